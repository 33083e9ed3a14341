"""Loops over columns: rounds of joins and sums of numbers, as whole columns at a time.

Lives here:  trees of columns, expressions and plan nodes over them, exact sums by group.
Comes in:    a loop over sides, and their rows as Arrow has them.
Goes out:    how its rows change, the same way; or that it is nothing for columns.
May import:  codec.
"""
