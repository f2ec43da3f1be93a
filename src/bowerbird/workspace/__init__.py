"""(package docstring: written by its author)."""
