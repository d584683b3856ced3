-- The keys of all tables at once.

-- primary_keys: SQLAlchemy asks for them

-- foreign_keys: SQLAlchemy asks for them
