"""Which failing constraints are reported, where, and with which evidence."""
