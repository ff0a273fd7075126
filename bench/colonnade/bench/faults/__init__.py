"""A whole federation in one process from one seed: virtual time, disk and network, and faults."""
