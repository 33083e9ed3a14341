"""The reference: it evaluates a query from scratch, readably, for `verify` to compare with.

Lives here:  one comprehension per plan node; joins by hash, recursion semi-naively.
Comes in:    a plan, and the rows of tables.
Goes out:    the rows of the query, as a bag.
May import:  `collections`, `codegen`, `runtime`, the accumulators of `operators`.
"""
