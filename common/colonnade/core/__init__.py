"""Values that every layer shares: fixed point, tables, errors."""
