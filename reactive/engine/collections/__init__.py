"""Containers of rows: Z-sets, indexes, tries, orders, exact sums.

Lives here:  containers, each with its law and its cost; none depends on queries.
Comes in:    rows with weights.
Goes out:    rows with weights, by key, in order, or as one value.
May import:  `runtime`.
"""
