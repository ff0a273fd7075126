"""Secure aggregation by pairwise masks that cancel in a sum, and the masks' key schedule."""
