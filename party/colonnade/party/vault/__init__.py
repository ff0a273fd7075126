"""The half of a party that touches data, ledger and randomness; it knows nothing of the network."""
