"""Linear models: losses, penalties, kernels and solutions from a Gram matrix."""
