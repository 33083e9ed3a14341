"""Destinations of views: folders of Parquet files, and batches that wait for a receiver.

Lives here:  rows as columns of files, folders of changes and of rows, the outbox.
Comes in:    numbered batches of changes of a view.
Goes out:    plain files that contain each batch once.
May import:  cluster, codec.
"""
