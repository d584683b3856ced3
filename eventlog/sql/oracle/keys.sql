-- The keys of all tables at once.

-- primary_keys: SQLAlchemy asks for all of them at once

-- foreign_keys: SQLAlchemy asks for all of them at once
