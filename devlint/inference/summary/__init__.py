"""One function to its summary, and calls by summary."""
