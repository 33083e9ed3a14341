"""Changes as messages of Kafka, written by Spark's own `kafka` format.

    without a key    a message per row that changed                     weight in a header
    with a key       a message per key that changed: its row of now     a tombstone if there is none

The value is the row as JSON. A batch that is written again, after a failure, has the same messages
under the same number: of a topic with keys the last one counts, so that changes nothing.

Source: log compaction; Spark's integration with Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reactive.errors import OffloadError
from spark_backend.sinks.frame_rows import END, REFUSED, refusals
from spark_backend.sinks.rows import WEIGHT

BATCH_HEADER, WEIGHT_HEADER = "batch", "weight"
FORMAT = "kafka"
UNIQUE = "\n  give a key that no two rows of the view agree on, or none"
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class KafkaTopic:
    """A topic, for `View.changes_to`.

    Each message has the headers `batch`, the number of its batch, and `weight`: how often the row
    comes, or goes if it is negative; both are text.

    Parameters
    ----------
    servers: `"host:port"`, more of them separated by commas.
    topic: its name.
    key: fields that no two rows of the view agree on. The key of a message is a JSON object of
        them, and the value the row of now, or none where there is no row any more. By default
        messages have no key, and there is one for each row that changed.
    options: further options of the format, such as `{"kafka.security.protocol": "SSL"}`.
    """

    takes_frames = True

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        key: str | Sequence[str] = (),
        options: Mapping[str, str] = NO_OPTIONS,
    ) -> None:
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._options = {
            **options,
            "kafka.bootstrap.servers": servers,
            "topic": topic,
            "includeHeaders": "true",
        }
        self._topic = topic
        self.__qualname__ = f"topic {topic}"

    def messages(self, frame: DataFrame, number: int) -> DataFrame:
        """The messages of a batch: a DataFrame of `key`, `value` and `headers`.

        Parameters
        ----------
        frame: the rows' columns, and `weight`.

        Raises
        ------
        OffloadError: the key is none of the columns.
        """
        names = [name for name in frame.columns if name != WEIGHT]
        missing = [name for name in self._key if name not in names]
        if missing:
            raise OffloadError(f"key {missing[0]!r} is none of the columns {', '.join(names)}")
        key = _json(self._key) if self._key else F.lit(None).cast("string")
        made = frame.select(key.alias("key"), _json(names).alias("value"), WEIGHT)
        if self._key:
            made = _last(made)
        headers = [(BATCH_HEADER, F.lit(str(number))), (WEIGHT_HEADER, F.col(WEIGHT))]
        pairs = [
            F.struct(F.lit(n).alias("key"), c.cast("string").cast("binary").alias("value"))
            for n, c in headers
        ]
        return made.orderBy(WEIGHT).select("key", "value", F.array(*pairs).alias("headers"))

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Write the messages of a batch.

        Raises
        ------
        OffloadError: the session does not have the format, or two rows have one key.
        """
        writer = self.messages(frame, number).write.format(FORMAT).options(**self._options)
        try:
            with refusals():
                writer.mode("append").save()
        except Exception as error:
            if "Failed to find data source: kafka" not in str(error):
                raise
            raise OffloadError(
                f"topic {self._topic!r} cannot be written: this Spark does not know Kafka\n"
                "  SparkOffload(config={'spark.jars.packages': "
                "'org.apache.spark:spark-sql-kafka-0-10_2.13:<version of Spark>'})"
            ) from error


def _json(names: Sequence[str]) -> Column:
    """Columns as an object of JSON."""
    return F.to_json(F.struct(*(f"`{name}`" for name in names)), {"ignoreNullFields": "false"})


def _last(made: DataFrame) -> DataFrame:
    """Of each key its row of now, with a weight of 1; or no value, and a weight of -1."""
    comes = F.col(WEIGHT) > 0
    now = F.max(F.when(comes, F.col("value")))
    count = F.sum(F.when(comes, F.col(WEIGHT)))
    found = made.groupBy("key").agg(now.alias("value"), count.alias("count"))
    text = F.concat(F.lit(f"{REFUSED}two rows have the key "), F.col("key"), F.lit(UNIQUE + END))
    checked = F.when(F.col("count") > 1, F.raise_error(text).cast("int")).otherwise(1)
    weight = F.when(F.col("value").isNull(), -1).otherwise(checked)
    return found.select("key", "value", weight.alias(WEIGHT))
