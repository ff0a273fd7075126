"""The coordinator: runs jobs, aggregates, meters, reports. Trusted with nothing private."""
