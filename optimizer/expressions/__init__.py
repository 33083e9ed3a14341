"""Computations of callables, as trees.

Lives here: composition of expressions, facts about their values, their text.
Comes in:   expressions.
Goes out:   expressions, and facts about them.
May import: `callables`.
"""
