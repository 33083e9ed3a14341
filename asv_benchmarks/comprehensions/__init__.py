"""A change of a comprehension, beside the best chain of methods that says the same.

Lives here: the pairs, and what times them.
Comes in:   nothing.
Goes out:   a table.
May import: `reactive`, what times two sides in turns.
"""
