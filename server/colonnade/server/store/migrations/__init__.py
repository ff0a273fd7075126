"""Migrations of the coordinator's database; the first is the schema before there were any."""
