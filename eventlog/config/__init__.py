"""The configuration: TOML and environment, read, checked, and made into what it names."""
