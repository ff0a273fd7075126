"""Kernels, sketches and solvers over fixed-point tables."""
