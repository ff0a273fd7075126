"""Tighter bounds that a party buys for its columns."""
