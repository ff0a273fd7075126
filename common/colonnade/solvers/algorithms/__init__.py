"""The algorithms of the single-site family: each an operator of the one iteration."""
