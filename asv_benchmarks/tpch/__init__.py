"""Queries of the shapes of TPC-H over rows of a generator of our own, as live views.

rows --> queries and twins (workloads) --> the command; duck: the same from scratch, by DuckDB

They are not the benchmark: its data, its texts and its rules are others. Money is in cents and
shares are in hundredths, so that all sums are of integers. What changes is the first table of each.
"""
