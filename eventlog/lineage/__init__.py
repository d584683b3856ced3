"""OpenLineage: a publisher says to a file which tables it reads and where their changes go."""
