"""The socket between a party's two processes, under attack."""
