"""The benchmark of vertical jobs."""
