"""Loops over columns: rounds of joins and sums of numbers, as whole columns at a time.

Lives here:  trees of columns, expressions and plan nodes over them, exact sums by group.
Comes in:    a loop over sides, and their rows in Arrow.
Goes out:    how its rows change, in Arrow; or that columns cannot run it.
May import:  codec.
"""
