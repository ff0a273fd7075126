"""The operator's console: parties, jobs as they run, errors, and a new job with its preview."""
