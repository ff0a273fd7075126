"""Generated protobuf bindings; see ``proto/generate.py``."""
