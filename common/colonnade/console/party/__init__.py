"""The data-protection officer's console: what waits, what left, what it cost, and why."""
