"""Johnson-Lindenstrauss sketches of integer columns, and how they are packed."""
