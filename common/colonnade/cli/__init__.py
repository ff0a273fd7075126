"""The command line; the only layer that knows both the server and the party."""
