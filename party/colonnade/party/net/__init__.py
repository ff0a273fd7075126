"""The half of a party that dials: calls, certificates and monitoring; no data and no ledger."""
