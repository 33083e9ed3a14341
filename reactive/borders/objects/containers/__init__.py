"""Lists, dictionaries and sets inside objects that are tracked.

    order.lines              a `list` that tells the order of each change, and takes it back
    its snapshot             a `FrozenList`, made of the one before in O(log n) per edit
    a loop over both         goes over what they do not share: the edit

Lives here: the containers, how they are made of plain ones, what a snapshot holds of them.
Comes in:   plain lists, dictionaries and sets; objects that own them (`container.Owner`).
Goes out:   immutable values that are compared by what they share (`collections/long_tuple.py`).
May import: collections.

No table is kept beside for what is in them. Measured (`asv_benchmarks/tracked_lists.py`): an append
and its way through a view costs what it costs in a list of ten, up to 10**6 values.
"""
