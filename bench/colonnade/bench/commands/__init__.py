"""The verbs of ``colonnade bench``."""
