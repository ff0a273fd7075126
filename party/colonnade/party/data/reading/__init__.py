"""Rows as they are before ingest: files, queries, encodings and types."""
