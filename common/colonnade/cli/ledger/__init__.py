"""``colonnade ledger``: show, verify, export, cap, recover."""
