"""The operator's Python client and the job builder."""
