"""The home of the Spark backend: large subgraphs moved to Spark partitions.

It is to depend on `reactive`, never the other way round, and is the only place that may import
pyspark. There is nothing in it yet.
"""
