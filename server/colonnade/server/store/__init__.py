"""The coordinator's durable state."""
