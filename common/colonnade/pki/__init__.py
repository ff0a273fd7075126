"""The certificates of a federation."""
