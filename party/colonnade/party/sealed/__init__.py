"""Whom a party trusts in sealed jobs and secure sums: grants of its policy, and pinned keys."""
