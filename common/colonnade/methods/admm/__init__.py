"""Federated private ADMM with client sampling: what both sides share."""
