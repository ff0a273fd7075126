"""From a Frank-Wolfe job's releases to its model: the same code at both sides."""
