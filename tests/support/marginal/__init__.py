"""Marginal regression: a fourth method, registered from outside the package."""
