"""The benchmark of federated ADMM: utility beside its peers, throughput, size and growth."""
