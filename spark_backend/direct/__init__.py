"""Flushes of few rows, done by this process: no job of Spark, and no JVM.

Lives here:  the deltas of such a flush as bags of rows; how rows are found in files by their keys.
Comes in:    the rows that change; state tables.
Goes out:    what is to be added to the tables.
May import:  codec, state.
"""
