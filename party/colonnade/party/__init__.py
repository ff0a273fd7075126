"""A party: owns its columns, its ledger and its noise."""
