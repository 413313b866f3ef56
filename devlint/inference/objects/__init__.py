"""The heap: what lists, dicts, modules and other objects hold, and what moves them."""
