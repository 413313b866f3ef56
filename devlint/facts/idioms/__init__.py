"""Single ways of writing that the interpreter asks about, one to a module: aliases, batches, placeholders, random draws."""
