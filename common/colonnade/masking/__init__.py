"""Pairwise masks that cancel in a sum, and the key schedule behind them."""
