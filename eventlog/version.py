"""The version, alone in a file so that asking for it imports nothing else."""

VERSION = "0.2.0"
__version__ = VERSION

DISTRIBUTION = "eventlog-cdc"
"""What the package is called where it is installed from; the index knows a stranger as eventlog."""
