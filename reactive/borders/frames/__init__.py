"""Data frames: what libraries of columns take of tables and views, and what these take of frames.

Lives here:  tables and views as Arrow, classes of rows of a schema, rows made by columns, the
             difference between a frame and a table, what a view has changed since a version.
Comes in:    anything with `__arrow_c_stream__`, or that narwhals knows; paths of files.
Goes out:    Arrow tables; rows; statements on a table.
May import:  `transactions`, `subscriptions`, `dataflow`, `storage`, `collections`, `runtime`.
"""
