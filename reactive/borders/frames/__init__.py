"""Data frames: export of tables and views to column libraries, and import of frames.

Lives here:  tables and views as Arrow, row classes made from schemas, rows made from columns, the
             difference between a frame and a table, the net changes of a view since a version.
Comes in:    anything with `__arrow_c_stream__`, or that narwhals knows; paths of files.
Goes out:    Arrow tables; rows; statements on a table.
May import:  `transactions`, `subscriptions`, `dataflow`, `storage`, `collections`, `runtime`.
"""
