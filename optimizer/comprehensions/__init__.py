"""From comprehensions over relations to plans.

Lives here: the translation of list, set and dict comprehensions, generators and built-in functions
            of collections over relations.
Comes in:   callables that name relations, and an engine's aggregates.
Goes out:   plans, and expressions with sub-queries that hold them.
May import: `callables`, `expressions`, `lifting`, `plans`.
"""
