"""What the inference knows of the values on some lines, and what decided that nothing is reported there."""
