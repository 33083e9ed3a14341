"""Queries of each row, or of each group of rows, as one query of all of them.

Lives here: what makes joins of sub-queries in callables, and of queries of a group.
Comes in:   a node whose callables have sub-queries, or a query that stands for each group.
Goes out:   a plan that has none.
May import: `callables`, `expressions`, `lifting`, `plans`.
"""
