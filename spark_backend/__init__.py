"""The Spark back end: parts of queries that outgrow the process are kept and worked on by Spark.

It depends on `reactive`, never the other way round, and is the only place that imports pyspark;
`import spark_backend` itself needs neither pyspark nor Java.
"""

from reactive.runtime.siblings import check_siblings

check_siblings()

from spark_backend.offload import SparkOffload

__all__ = ["SparkOffload"]
