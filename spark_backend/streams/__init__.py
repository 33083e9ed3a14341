"""Streams that feed tables on Spark: the meaning of their rows, and each batch of them once.

Lives here:  forms of changes, rows that do not fit, followed folders and queries.
Comes in:    DataFrames, streaming or not.
Goes out:    versions of the rows of a table, which record their batch.
May import:  cluster, codec, state, tables.
"""
