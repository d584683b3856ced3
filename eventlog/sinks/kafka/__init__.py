"""The Kafka sink: documents in transactions, each there whole or not at all."""
