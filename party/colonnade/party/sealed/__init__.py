"""Whom a party trusts in sealed jobs: grants of its policy, and pinned keys."""
