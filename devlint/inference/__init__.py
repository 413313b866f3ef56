"""The inference of devices: where each value is, which operations need values together, and who says that they are not.

A function is read once and gives a `Summary`: its result, its open constraints and its effects, in terms of its arguments.
A call puts values in the place of the arguments. A finding is a constraint that fails.

The parts, each of which knows only those above it:

    terms/     places, conditions, values: what is said of one value
    program/   files, imports, classes: what the code defines
    library/   what torch and other libraries do, as data
    objects/   the heap: what lists, modules and other objects hold, and what moves them
    summary/   one function to its summary; calls by summary
    witness/   which failing constraints are reported, and with which evidence
    observed/  events of every call, attribute, comparison and assignment
    reveal/    what is known on one line, and what decided there
"""
