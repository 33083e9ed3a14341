"""The Spark back end: parts of queries that outgrow the process are kept and worked on by Spark.

It depends on `reactive`, never the other way round, and is the only place that imports pyspark;
`import spark_backend` itself needs neither pyspark nor Java.
"""

from typing import TYPE_CHECKING

from reactive.engine.runtime.siblings import check_siblings

check_siblings()

from optimizer.lazy import make_module_getattr
from spark_backend.offload import SparkOffload

if TYPE_CHECKING:
    from spark_backend.sinks.changes_folder import ChangesFolder
    from spark_backend.sinks.frame_rows import KafkaTopic
    from spark_backend.sinks.rows_folder import RowsFolder
    from spark_backend.streams.source import SparkSource

__all__ = ["ChangesFolder", "KafkaTopic", "RowsFolder", "SparkOffload", "SparkSource"]

__getattr__ = make_module_getattr(
    __name__,
    {
        "ChangesFolder": "spark_backend.sinks.changes_folder",
        "KafkaTopic": "spark_backend.sinks.frame_rows",
        "RowsFolder": "spark_backend.sinks.rows_folder",
        "SparkSource": "spark_backend.streams.source",
    },
)
