"""What the code defines: files, imports, functions and classes."""
