"""Tables that simulations start from: made up, or from a file or a frame."""
