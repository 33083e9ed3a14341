"""Rows and expressions as Spark has them: pickled, in Arrow batches, as columns.

Lives here:  schemas of rows, codecs, expressions as columns, functions for workers.
Comes in:    rows, their types, expressions.
Goes out:    bytes, batches and columns that give the same rows back, exactly.
May import:  cluster.
"""
