"""Planted bugs, each with a test that must go red."""
