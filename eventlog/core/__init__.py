"""The words and the rules of change capture. No I/O."""
