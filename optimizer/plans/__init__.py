"""Queries as trees.

Lives here: nodes, facts about their rows, how joins and groups split, plans as text.
Comes in:   plans.
Goes out:   plans, and facts about them.
May import: `callables`, `expressions`, `lifting`.
"""
