"""Where Documents go: files, standard output, HTTP, databases, Kafka."""
