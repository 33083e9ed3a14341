"""Objects that change: what is assigned to them becomes commits of the tables that hold them.

Lives here: the decorator, snapshots of objects, the table of objects, what finds silent changes.
Comes in:   classes of users and their instances; assignments to these.
Goes out:   snapshots as rows, and one update of a row for each object that changed in a commit.
May import: transactions, storage, api.
"""
