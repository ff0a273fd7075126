"""The rules of the ledger: what may follow what, and what an entry changes."""
