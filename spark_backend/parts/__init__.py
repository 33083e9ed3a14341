"""Parts of queries that are kept on Spark: what a part was given, and what it comes to.

Lives here:  logs of changes by bucket, totals of groups, spilled tables.
Comes in:    changes of what a part reads.
Goes out:    changes of its rows, and all of them.
May import:  cluster, codec, tables.
"""
