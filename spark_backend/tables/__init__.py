"""DataFrames on both ends: tables whose rows are on Spark, and views whose rows are sent there.

Lives here:  tables over DataFrames, chains that run on workers, results as DataFrames.
Comes in:    a DataFrame; the rows of a part on Spark.
Goes out:    rows and changes for the process; DataFrames.
May import:  cluster, codec.
"""
