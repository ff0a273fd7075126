"""Single-site private solvers: one noisy fixed-point iteration and its instances."""
