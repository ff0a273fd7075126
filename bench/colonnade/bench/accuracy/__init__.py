"""Accuracy at equal prices: what jobs are compared with, and how far they are from it."""
