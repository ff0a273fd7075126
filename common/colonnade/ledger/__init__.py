"""The ledger: a party's append-only account of its releases, and the gate in front of it."""
