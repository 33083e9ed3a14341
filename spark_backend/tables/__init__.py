"""DataFrames on both ends: tables whose rows Spark has, and views whose rows go there.

Lives here:  tables over DataFrames, chains that run on workers, results as DataFrames.
Comes in:    a DataFrame; what a part on Spark holds.
Goes out:    rows and changes for the process; DataFrames.
May import:  cluster, codec.
"""
