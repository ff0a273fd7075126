"""The report of a single-site fit."""
