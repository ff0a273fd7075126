"""``colonnade align``: have parties' people put in one order, privately."""
