"""The coordinator's side of federated DP-ADMM."""
