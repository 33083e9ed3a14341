"""Window functions: the rows of a partition in order, and what each function says of every row.

`window` is what a plan holds. `entries` keeps the rows, `frames` says which rows a function is
asked of, `places`, `values`, `totals` and `extremes` have the functions, `kept` what a change does.
"""
