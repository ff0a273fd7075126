"""A cap by person over several projects: one account that several ledgers charge first."""
