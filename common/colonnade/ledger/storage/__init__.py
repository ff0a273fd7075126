"""Where a ledger's lines are kept: memory or SQLite, with a mirror of the head."""
