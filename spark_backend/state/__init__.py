"""State tables: rows with weights in Parquet files that a manifest names, changed flush by flush.

Lives here:  the manifest, the tables, the merging of files.
Comes in:    DataFrames, or Arrow tables of few rows, that a flush adds to tables.
Goes out:    DataFrames of the rows of tables, and the rows that a flush wrote.
May import:  cluster, codec.
"""
