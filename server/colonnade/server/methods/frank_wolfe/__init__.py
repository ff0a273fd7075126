"""The coordinator's side of private block-coordinate Frank-Wolfe."""
