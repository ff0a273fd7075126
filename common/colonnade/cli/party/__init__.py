"""``colonnade party``."""
