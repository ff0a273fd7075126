"""What differs where several coordinator processes share a database."""
