"""Secure sums over the hosts of a job: the exchanges of an attempt, and what is promised."""
