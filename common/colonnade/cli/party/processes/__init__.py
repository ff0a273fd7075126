"""The commands that run a party: both halves, or one of them."""
