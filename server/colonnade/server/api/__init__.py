"""The coordinator's gRPC services."""
