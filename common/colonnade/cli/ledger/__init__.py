"""``colonnade ledger``: show, verify, export, cap, approvers, join, recover, evidence."""
