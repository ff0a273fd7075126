"""Jobs over columns: what both sides of a vertical job must compute alike."""
