"""The interpreter: runs a file's functions on what is known of each value. `machine` lists its parts in their order."""
