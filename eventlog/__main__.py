"""`python -m eventlog`."""

from eventlog.cli.main import run

run()
