"""All rows of a nest, worked out on Spark of what the parts of its levels keep.

    rows of the inputs, as parts have them --the steps of the query, from nothing--> rows with lists

The process reads them from files that are written for the one who reads, some at a time.

State:  none; files while somebody reads.
Cost:   one job, O(rows of all levels).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from optimizer import plan
from reactive.engine.collections.zset import Pair
from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.fragments import Fragment
from spark_backend.cluster.files import located
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import pairs_of
from spark_backend.codec.schema import Pickled, Typed
from spark_backend.fragments.compile import Compiler
from spark_backend.fragments.inputs import inputs_of
from spark_backend.fragments.remote import StateRemote
from spark_backend.steps.step import Flush
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import as_columns

Part = tuple[StateRemote, Sequence[ExternalInput]]
"""A part, and its inputs that are fed, with all that they have been."""
AT_A_TIME = 4_096
"""Rows that are read from files together."""


class Nested:
    """The rows of a nest.

    Parameters
    ----------
    fragment: the whole query; its inputs are those of the parts.
    parts: what keeps the levels.
    folder: where files are while somebody reads.
    """

    def __init__(
        self, session: Session, fragment: Fragment, parts: Sequence[Part], folder: str
    ) -> None:
        self._session, self._fragment, self._parts = session, fragment, parts
        self._folder = f"{folder}/reading-{uuid4().hex}"

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """All rows, a column per field, of what is inside a list."""
        return as_columns(self._rows())

    def pieces(self) -> Iterator[list[Pair]]:
        """All rows as of now, some at a time, of files that are there meanwhile."""
        with ExitStack() as held:
            for remote, _ in self._parts:
                held.callback(remote.hold_inputs())
            rows = self._rows()
            rows.frame.select("row", "weight").write.parquet(self._folder)
        assert not isinstance(rows.kept, Pickled)
        return self._read(rows.kept)

    def _read(self, kept: Typed) -> Iterator[list[Pair]]:
        found = located(self._folder, self._session)
        try:
            files = ds.dataset(found.root, filesystem=found.files, format="parquet")
            for batch in files.to_batches(batch_size=AT_A_TIME, batch_readahead=1):
                yield pairs_of(kept, pa.Table.from_batches([batch]))
        finally:
            with suppress(OSError):
                found.files.delete_dir(found.root)

    def _rows(self) -> Weighted:
        inputs = dict(enumerate(inputs_of(self._session, self._fragment)))
        top = Compiler(self._session, inputs).top(self._fragment.node)
        given: dict[int, DataFrame] = {}
        counts: Counter[int] = Counter()
        for place, each in inputs.items():
            frame, counts[place] = self._input(each.node)
            if frame is not None:
                given[place] = frame
        tables = self._parts[0][0].shared.tables.as_new()
        where = self._session.spark, tables, given, counts, counts.total()
        careful = any(remote.shared.careful for remote, _ in self._parts)
        flush = Flush(*where, careful, self._session.paths)
        found = flush.delta(top)
        return Weighted(flush.empty(top.kept) if found is None else found, top.kept)

    def _input(self, node: plan.Node) -> tuple[DataFrame | None, int]:
        """The rows of an input, and how many there are at most."""
        for remote, fed in self._parts:
            found = remote.rows_of(node, fed)
            if found is not None:
                return found
        raise AssertionError(f"no level reads {node}")
