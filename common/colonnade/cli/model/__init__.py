"""Commands about models that are there."""
