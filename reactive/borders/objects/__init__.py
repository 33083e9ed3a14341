"""Tracked objects: assignments to them become commits of the tables that contain them.

Lives here: the decorator, snapshots of objects, the table of objects, the check for silent changes.
Comes in:   classes of users and their instances; assignments to these.
Goes out:   snapshots as rows, and one update of a row for each object that changed in a commit.
May import: transactions, storage, api.
"""
