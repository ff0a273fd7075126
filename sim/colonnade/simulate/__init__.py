"""Whole jobs in one process on made-up data, for plans and benchmarks: nothing is private."""
