"""The cryptographic parts of an alignment."""
