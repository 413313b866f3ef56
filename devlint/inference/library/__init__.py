"""What torch and other libraries do, as data."""
