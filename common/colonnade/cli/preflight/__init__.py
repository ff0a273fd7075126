"""``colonnade preflight``: what would go wrong, why, and how to fix it, before the first job."""
