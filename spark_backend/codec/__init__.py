"""Rows and expressions in Spark: pickled, in Arrow batches, as columns.

Lives here:  schemas of rows, codecs, expressions as columns, functions for workers.
Comes in:    rows, their types, expressions.
Goes out:    bytes, batches and columns that decode to the same rows, exactly.
May import:  cluster.
"""
