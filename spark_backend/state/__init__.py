"""State tables: rows with weights in Parquet files that a manifest names, changed flush by flush.

Lives here:  the manifest, the tables, what adds their files up.
Comes in:    DataFrames, or Arrow tables of few rows: what a flush adds to each table.
Goes out:    DataFrames of what the tables hold, and what a flush wrote.
May import:  cluster, codec.
"""
