"""Benchmarks of what a real federation begins with: aligning tables."""
