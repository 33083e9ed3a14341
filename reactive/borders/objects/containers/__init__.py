"""Lists, dictionaries and sets inside tracked objects.

    order.lines              a `list` that reports each change to the order, and can undo it
    its snapshot             a `FrozenList`, made of the last one in O(log n) per edit
    comparing two snapshots  visits only the parts that they do not share: the edit

Lives here: the containers, their creation from plain ones, their snapshots.
Comes in:   plain lists, dictionaries and sets; objects that own them (`container.Owner`).
Goes out:   immutable values that share unchanged parts (`collections/long_tuple.py`).
May import: collections.

Their contents are not stored in a table of their own. Measured (`asv_benchmarks/tracked_lists.py`):
an append and its update of a view cost the same for a list of ten and of 10**6 values.
"""
