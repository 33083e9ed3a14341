"""Window functions: the rows of a partition in order, and the answer of each function for a row.

`window` is the reducer of a plan. `sort_keys` says where a row stands, `entries` holds the rows in
order, `frames` finds the rows that a function reads, `function` and `window` have the functions,
`partition` applies a change.
"""
