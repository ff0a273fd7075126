"""How good a simulated job's model is, and what it is compared with."""
