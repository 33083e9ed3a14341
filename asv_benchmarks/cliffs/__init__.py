"""Queries that once fell off a cliff, each beside its neighbour, or beside a twin.

A file per family of rows of the table; `cliff.py` defines and measures a row, `beside.py` makes
rows of workloads. Both sides of a row are timed in turns by `turns.py`, and are equal.
"""
