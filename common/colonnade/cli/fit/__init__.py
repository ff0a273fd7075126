"""``colonnade fit``: options, input and output."""
