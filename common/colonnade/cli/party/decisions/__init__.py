"""Jobs that wait at a party, and what people decide on them."""
