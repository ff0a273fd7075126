"""What each part of the page shows of a report."""
