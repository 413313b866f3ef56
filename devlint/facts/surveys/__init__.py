"""Facts that need the shape of a whole file next to what the interpreter found: loops, processes, streams, start-up."""
