"""What the text of a file says by itself: nodes, names, parameters, classes, who calls whom. Nothing is run to know it."""
