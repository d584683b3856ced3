"""The words and the rules of change capture. No I/O: only durable_files and file_lock touch a disk."""
