"""The rules: each a function from a plan node to a plan node, which is itself where none applies."""
