"""The version, alone in a file so that asking for it imports nothing else. Between two releases it is the next one with `.dev0`."""

VERSION = "0.3.0.dev0"
__version__ = VERSION

DISTRIBUTION = "eventlog-cdc"
"""What the package is called where it is installed from; the index knows a stranger as eventlog."""

STREAMS_TOOLS = "eventlog-streams-tools"
"""The package of this repository that has emulators and dumps of streams."""
