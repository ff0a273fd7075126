"""The coordinator's side of each method."""
