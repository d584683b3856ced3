-- What the database's own catalog tells of tables and triggers.

-- declared_types: SQLAlchemy tells PostgreSQL's types as they are
