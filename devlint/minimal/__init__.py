"""The smallest program that shows a finding or a silence, without the names of the one that it comes from."""
