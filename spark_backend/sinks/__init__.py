"""What views are written to: folders of Parquet files, and batches that wait for a receiver.

Lives here:  rows as columns of files, folders of changes and of rows, the outbox.
Comes in:    numbered batches of changes of a view.
Goes out:    files that anybody can read, in which each batch is once.
May import:  cluster, codec.
"""
