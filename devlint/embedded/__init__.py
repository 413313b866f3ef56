"""Python inside other files: code cells of notebooks and fenced blocks of Markdown, checked and fixed in place."""

NOTEBOOK = ".ipynb"
MARKDOWN = (".md", ".markdown")
EMBEDDING = (NOTEBOOK, *MARKDOWN)
