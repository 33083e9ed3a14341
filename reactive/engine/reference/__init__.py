"""The query from scratch: what `verify` compares with, written to be read.

Lives here:  one comprehension per plan node; joins by hash, recursion semi-naively.
Comes in:    a plan, and the rows of tables.
Goes out:    the rows of the query, as a bag.
May import:  `collections`, `codegen`, `runtime`, the accumulators of `operators`.
"""
