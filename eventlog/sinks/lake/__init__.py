"""Change tables, or mirrors of their sources, as tables of a lake: Delta Lake and Apache Iceberg."""
