"""Queries of receivers: `<query>` and `<query-schema>` over HTTP, answered with what the output publishes of the same rows."""
