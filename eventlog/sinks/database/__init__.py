"""Change tables in a database: what they are made of, how they change with their sources, how rows
get into them.
"""
