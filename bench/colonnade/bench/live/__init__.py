"""Real processes under attack and over time."""
