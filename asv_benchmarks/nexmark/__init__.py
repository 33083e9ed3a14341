"""Queries of the shapes of NEXMark, Q0 to Q8, over an auction of our own, as live views.

rows --> queries and twins (workloads) --> the command

Windows are the minutes of a time that is an integer: tumbling ones, and nothing is late or dropped.
What changes is the first table of each query: bids, or auctions where no bids are read.
"""
