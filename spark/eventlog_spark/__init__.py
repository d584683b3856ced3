"""eventlog on Spark: the log as a data source, and bulk conversion with the daemon's own rules. Extra: `[spark]`."""
