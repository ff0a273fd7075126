"""Benchmarks of the single-site solvers: the papers' tables, speed, growth and peers."""
