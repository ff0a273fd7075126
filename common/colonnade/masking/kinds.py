"""The messages of a secure sum that cost nothing, as ledgers and meters know them."""

KEY = "cohort-key"
SHARES = "cohort-shares"
SURVIVORS = "cohort-survivors"
OPENED = "cohort-opened"
