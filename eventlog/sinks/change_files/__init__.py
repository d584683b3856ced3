"""Change tables as folders of files."""
