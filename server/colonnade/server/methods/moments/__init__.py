"""The coordinator's side of a moments job."""
