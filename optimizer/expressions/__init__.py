"""What a callable computes, as trees.

Lives here: how expressions are put together, what is known of their values, their text.
Comes in:   expressions.
Goes out:   expressions, and facts about them.
May import: `callables`.
"""
