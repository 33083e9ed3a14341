"""Streams that feed tables on Spark: what their rows say, and each batch of them once.

Lives here:  forms of changes, rows that do not fit, folders and queries that are followed.
Comes in:    DataFrames, streaming or not.
Goes out:    versions of the rows of a table, which note the batch that they are of.
May import:  cluster, codec, state, tables.
"""
