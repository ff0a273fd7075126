"""Simulated jobs over clients."""
