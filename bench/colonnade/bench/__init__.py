"""Benchmarks and the crash harness."""
