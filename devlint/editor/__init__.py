"""devlint inside other programs: the language server for editors, and the flake8 plugin."""
