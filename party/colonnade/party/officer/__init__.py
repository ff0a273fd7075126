"""What a data-protection officer reads and decides."""
