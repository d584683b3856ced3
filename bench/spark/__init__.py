"""What Spark adds to the local engine, and what it costs: two engines side by side, growth, and reading PostgreSQL."""
