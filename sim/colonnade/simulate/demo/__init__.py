"""The whole story in one command: from three messy files to scores and a report."""
