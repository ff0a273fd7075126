"""Jobs in one process: the shipped steps of both sides, without wire or processes."""
