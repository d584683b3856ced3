"""Events in the formats of others: plain JSON lines, the envelope of Debezium, and CloudEvents."""
