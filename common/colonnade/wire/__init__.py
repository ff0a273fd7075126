"""What crosses between processes, as protobuf."""
