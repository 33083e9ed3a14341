"""Decorrelation: a query for each row, or for each group of rows, as one query for all of them.

Lives here: rewrites of sub-queries in callables, and of queries of a group, to joins.
Comes in:   a node whose callables have sub-queries, or a query over a group.
Goes out:   a plan without sub-queries.
May import: `callables`, `expressions`, `lifting`, `plans`.
"""
