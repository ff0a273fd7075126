"""A party's table: sources, ingest, columns, bounds, and what binds it to a ledger."""
