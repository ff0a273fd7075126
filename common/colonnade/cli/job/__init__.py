"""``colonnade job``."""
