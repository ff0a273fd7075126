"""Exact integer sums over the rows of a party's table, on this machine or on many."""
