"""Flushes of few rows in this process: no job of Spark, and no JVM.

Lives here:  the deltas of such a flush as bags of rows; look-ups of rows in files by keys.
Comes in:    the rows that change; state tables.
Goes out:    the rows to add to the tables.
May import:  codec, state.
"""
