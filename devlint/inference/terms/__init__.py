"""What is said of one value: its kind, where it may be, and under which conditions."""
