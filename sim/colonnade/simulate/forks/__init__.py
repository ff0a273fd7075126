"""Processes that are forks of one that has imported everything."""
