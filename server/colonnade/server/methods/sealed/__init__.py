"""The coordinator's side of a sealed job."""
