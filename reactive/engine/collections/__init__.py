"""Rows at rest and in motion, as data: Z-sets, indexes, tries, orders, exact sums.

Lives here:  containers, each with its law and its cost; none knows a query.
Comes in:    rows with weights.
Goes out:    rows with weights, by key, in order, or as one value.
May import:  `runtime`.
"""
