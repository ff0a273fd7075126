"""Make, run and watch a coordinator."""
