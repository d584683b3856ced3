"""The words and the rules of change capture. No I/O: only durable_files touches a disk."""
