"""From a moments job's releases to its model: the same code at both sides."""
