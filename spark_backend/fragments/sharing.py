"""Assign fragments to shared states, and read all rows of a nest from the states of its levels.

Fragments of one database that read the same tables share a state:

    by town       orders, customers  --+-- one state
    by client     orders, customers  --+
    towns         customers            --- another

A fragment joins the state that has its tables from an earlier process; else the first with room, or
a new one. A state with tables of absent plans has no room, because they would be lost. Recursions,
which may take long, are not shared.

State:  the open states.

`NestRows` computes all rows of a nest on Spark from the rows that the parts of its levels store:

    rows of the inputs in the parts --the steps of the query, from an empty state--> rows with lists

The process reads them from temporary files, a batch at a time.

State:  none; files during the reading.
Cost:   one job, O(rows of all levels).
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs
from pyspark.sql import DataFrame

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import nodes, reads_stream, tables
from reactive.engine.collections.zset import Pair
from reactive.engine.remote.fragments import RECURSIONS, Fragment
from reactive.engine.remote.remote import ExternalInput
from spark_backend.cluster.files import locate
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import pairs_of
from spark_backend.codec.schema import Pickled, Typed
from spark_backend.fragments.compile import Compiler
from spark_backend.fragments.members import plan_name
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import inputs_of
from spark_backend.fragments.shared import SharedState
from spark_backend.state.checkpoint import ANEW
from spark_backend.steps.step import Flush
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import as_columns

DIGITS = 24
Key = tuple[bool, tuple[int, ...]]


def may_share(fragment: Fragment) -> bool:
    """Return True if a fragment may share a state: its inputs are kept for those that join."""
    is_kept = not any(map(reads_stream, fragment.inputs))
    is_loop = any(isinstance(n, RECURSIONS) for n in nodes(fragment.node))
    return fragment.is_whole and is_kept and not is_loop


@dataclass
class _OpenState:
    """An open state: its database, and its tables."""

    of: weakref.ref[object]
    key: Key
    folder: str
    state: SharedState


class SharingStates:
    """The states of a checkpoint that fragments share.

    Parameters
    ----------
    folder: the folder of the checkpoint.
    """

    def __init__(self, session: Session, folder: str) -> None:
        self._session, self._folder = session, folder
        self._open: list[_OpenState] = []

    def place_for(
        self, fragment: Fragment, of: object, *, is_kept: bool
    ) -> tuple[str, SharedState]:
        """Return the state that a fragment joins, and its folder.

        Parameters
        ----------
        of: the database.
        is_kept: True if a later process may continue the state.

        Raises
        ------
        NotColumns: columns cannot express the fragment.
        OffloadError: the state of an earlier process cannot be read.
        """
        self._open = [each for each in self._open if not each.state.is_closed]
        read = dict.fromkeys(table for node in fragment.inputs for table in tables(node))
        key = is_kept, tuple(sorted(table.number for table in read))
        digest = fingerprint("tables", sorted(map(fingerprint, read)))
        plan = plan_name(fragment, inputs_of(self._session, fragment))
        free: _OpenState | None = None
        for each in self._candidates(key, of, digest):
            state = each.state.roster
            if each.key != key or each.of() is not of or state.has(plan) or not state.is_settled:
                continue
            if state.keeps(plan):
                return each.folder, each.state
            free = each if free is None and state.has_room else free
        found = free or self._begin(key, of, digest, self._unused_folder(digest, is_kept=is_kept))
        return found.folder, found.state

    def _candidates(self, key: Key, of: object, digest: str) -> Iterator[_OpenState]:
        """Yield the open states, and the states that an earlier process left."""
        yield from tuple(self._open)
        if key[0]:
            open_now = {each.folder for each in self._open}
            for folder in self._folders(digest):
                if folder not in open_now:
                    if not self._exists(folder):
                        return
                    yield self._begin(key, of, digest, folder)

    def _begin(self, key: Key, of: object, digest: str, folder: str) -> _OpenState:
        state = SharedState(self._session, folder, digest, stable=key[0])
        self._open.append(_OpenState(weakref.ref(of), key, folder, state))
        return self._open[-1]

    def _folders(self, digest: str) -> Iterator[str]:
        """Yield the folders that a state of a plan may have, without end."""
        first = f"{self._folder}/{digest[:DIGITS]}"
        yield first
        yield from (f"{first}-{number}" for number in count(2))

    def _unused_folder(self, digest: str, *, is_kept: bool) -> str:
        """Return a folder for a new state: a unique one, or, for a state that is kept, the first of
        its names that is neither open nor on disk."""
        if not is_kept:
            return f"{self._folder}/{ANEW}{uuid4().hex}"
        open_now = {each.folder for each in self._open}
        return next(f for f in self._folders(digest) if f not in open_now and not self._exists(f))

    def _exists(self, folder: str) -> bool:
        found = locate(folder, self._session)
        return bool(found.files.get_file_info(found.root).type != fs.FileType.NotFound)


Part = tuple[StateRemote, Sequence[ExternalInput]]
"""A part, and its external inputs with all versions."""
AT_A_TIME = 4_096
"""The number of rows of a batch that is read from files."""


class NestRows:
    """The rows of a nest.

    Parameters
    ----------
    fragment: the whole query; its inputs are inputs of the parts.
    parts: the parts that store the levels.
    folder: the folder of the temporary files.
    """

    def __init__(
        self, session: Session, fragment: Fragment, parts: Sequence[Part], folder: str
    ) -> None:
        self._session, self._fragment, self._parts = session, fragment, parts
        self._folder = f"{folder}/reading-{uuid4().hex}"

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """Return all rows, a column per field of the inner rows."""
        return as_columns(self._compute())

    def pieces(self) -> Iterator[list[Pair]]:
        """Yield all current rows in batches, from temporary files."""
        with ExitStack() as held:
            for remote, _ in self._parts:
                held.callback(remote.hold_inputs())
            rows = self._compute()
            rows.frame.select("row", "weight").write.parquet(self._folder)
        assert not isinstance(rows.kept, Pickled)
        return self._read_batches(rows.kept)

    def _read_batches(self, kept: Typed) -> Iterator[list[Pair]]:
        """Yield the rows of the temporary files in batches; the files are deleted at the end, or
        when the generator is closed."""
        found = locate(self._folder, self._session)
        try:
            files = ds.dataset(found.root, filesystem=found.files, format="parquet")
            for batch in files.to_batches(batch_size=AT_A_TIME, batch_readahead=1):
                yield pairs_of(kept, pa.Table.from_batches([batch]))
        finally:
            with suppress(OSError):
                found.files.delete_dir(found.root)

    def _compute(self) -> Weighted:
        """Return all current rows of the nest, computed over the rows of its levels."""
        inputs = dict(enumerate(inputs_of(self._session, self._fragment)))
        top = Compiler(self._session, inputs).top(self._fragment.node)
        given: dict[int, DataFrame] = {}
        counts: Counter[int] = Counter()
        for place, each in inputs.items():
            frame, counts[place] = self._read_input(each.node)
            if frame is not None:
                given[place] = frame
        tables = self._parts[0][0].shared.tables.as_new()
        where = self._session.spark, tables, given, counts, counts.total()
        careful = any(remote.shared.careful for remote, _ in self._parts)
        flush = Flush(*where, careful, self._session.paths)
        found = flush.delta(top)
        return Weighted(flush.empty(top.kept) if found is None else found, top.kept)

    def _read_input(self, node: plan.Node) -> tuple[DataFrame | None, int]:
        """Return the rows of an input, and their maximum number.

        The rows are None if there are none. Raises `AssertionError` if no level reads the input.
        """
        for remote, fed in self._parts:
            found = remote.rows_of(node, fed)
            if found is not None:
                return found
        raise AssertionError(f"no level reads {node}")
