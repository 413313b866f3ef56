"""Commands for people who work on devlint itself; nothing at lint time imports this package."""
