"""How a ledger is written: the journal that appends, and the log of decisions."""
