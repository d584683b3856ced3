"""`eventlog init` and `eventlog config`: a first configuration file, and what is in force and where it came from."""
