"""What rules can subscribe to: every call, attribute, comparison and assignment, with what is inferred of its parts.

collect.py   keeps what each expression was, in each run of the function around it
resolve.py   what something given is: by its annotation, or by the constructor call that hands it over
members.py   which methods and attributes an object has
guards.py    the conditions and handlers around a place
events.py    the events
emit.py      from what was kept to events, in the order of the file
"""
