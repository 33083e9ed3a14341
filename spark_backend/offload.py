"""The back end that moves parts of queries to Spark when they outgrow the process.

Each part has a folder with its state tables. In a checkpoint folder given by the user, the folder
is named after the part, and a later process continues its state.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import reads_stream, tables
from reactive.borders.offload.backend import byte_count, row_count
from reactive.engine.collections.zset import Pair
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Adopt, check_adopt
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import BagStore
from reactive.errors import OffloadError
from spark_backend.cluster.paths import absolute_path, is_remote, writing
from spark_backend.cluster.progress import show_progress
from spark_backend.cluster.session import Session, check_spark
from spark_backend.state.checkpoint import ANEW, SPILLED, lock_folder

if TYPE_CHECKING:
    from reactive.borders.sinks.durable_outbox import FrameTarget, SinkTarget
    from reactive.borders.sinks.making import SinkOptions
    from reactive.engine.remote.remote import ExternalInput, StreamOptions
    from spark_backend.bucketed.remote import BucketedRemote
    from spark_backend.fragments.remote import StateRemote
    from spark_backend.fragments.shared import SharedState
    from spark_backend.fragments.sharing import NestRows, SharingStates
    from spark_backend.parts.spilled import SpilledStore
    from spark_backend.parts.spilled_keyed import SpilledKeyedStore
    from spark_backend.sinks.outbox import FileOutbox
    from spark_backend.state.checkpoint import ViewLedger
    from spark_backend.streams.feed import Feed
    from spark_backend.tables.table import ScanRemote, SparkRows

Rows = BagStore | KeyedStore
"""The store of the rows of a table in the process."""
NO_VIEWS: Mapping[str, str] = MappingProxyType({})
log = logging.getLogger("reactive")


class SparkOffload:
    """A back end that keeps parts of queries on Spark.

    Parameters
    ----------
    threshold_rows, threshold_bytes: the size of an operator that is moved; None for no limit.
        Bytes are a number, or a text as `"1GB"` or `"512MiB"`.
    master: the address of Spark; `"local[*]"` uses all cores of this machine, `"sc://host:15002"`
        is a server of Spark Connect.
    session: a `SparkSession` to use instead, also one of Spark Connect. It is never stopped, and
        keeps its settings.
    checkpoint: a folder whose state a later process can continue, or a URI of a file system that
        Spark knows, such as `"s3a://bucket/folder"`; by default a temporary folder, which is
        deleted at the end. One `SparkOffload` at a time may use it.
    trust: True if pickled rows in the checkpoint may be read; it has some if rows have no plain
        types. Reading them runs any code that was stored there.
    adopt: the repair if the tables of a view hold other rows than an earlier process left in the
        checkpoint: `"state"` puts the rows of the state into the tables, `"process"` sends the
        difference to the state; None raises `OffloadError`. As `view.offload(adopt=...)`.
    flush_interval: the seconds after which views are updated without a read; None for updates by
        reads only.
    max_waiting, max_waiting_bytes: the number of changed rows that may wait for a flush with any
        operator, and their approximate bytes with all operators, before writers wait too; None for
        no limit.
    config: further settings of Spark, such as `{"spark.driver.memory": "4g"}`.

    Raises
    ------
    OffloadError: pyspark, pyarrow or Java is missing; or a limit is invalid.
    ValueError: `adopt` has another value.
    """

    def __init__(
        self,
        *,
        threshold_rows: int | None = 1_000_000,
        threshold_bytes: int | str | None = None,
        master: str = "local[*]",
        session: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        trust: bool = False,
        adopt: Adopt | None = None,
        flush_interval: float | None = None,
        max_waiting: int | None = 1_000_000,
        max_waiting_bytes: int | str | None = "256MB",
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.threshold_rows = row_count(threshold_rows, "threshold_rows")
        self.threshold_bytes = byte_count(threshold_bytes, "threshold_bytes")
        self.max_waiting = row_count(max_waiting, "max_waiting")
        self.max_waiting_bytes = byte_count(max_waiting_bytes, "max_waiting_bytes")
        self.flush_interval = flush_interval
        check_spark(java=session is None and not master.startswith("sc://"))
        check_adopt(adopt)
        self._is_kept = checkpoint is not None
        self._folder = _checkpoint_folder(checkpoint)
        self.session = Session(master=master, session=session, config=config, folder=self._folder)
        is_far = is_remote(self._folder)
        self._spilled = _checkpoint_folder(None) if is_far else f"{self._folder}/{SPILLED}"
        """The local folder of rows that this process reads again."""
        self._trust = trust
        self._adopt = adopt
        self._ledger: ViewLedger | None = None
        self._lock: IO[bytes] | None = None
        self._begun: dict[str, BucketedRemote | StateRemote | SharedState | SparkRows] = {}
        self._sharing: SharingStates | None = None
        self._on_spark: set[str] = set()
        """The names of tables on Spark."""
        self._streamed: set[str] = set()
        """The names of tables that streams feed."""
        self._written: set[str] = set()
        """Folders with pickled rows that this process has written itself."""
        self._users = 0

    def refuse(self, fragment: Fragment) -> str | None:
        """Return the reason why a part cannot move to Spark, or None."""
        from spark_backend.codec.codec import find_obstacle

        return None if fragment.is_whole else find_obstacle(fragment.node)

    def apart(self, fragment: Fragment) -> str | None:
        """Return the reason why a whole part of a plan cannot run in columns, in one job per flush,
        or None."""
        from spark_backend.fragments.roster import find_column_obstacle
        from spark_backend.recursion.compile import recursion_step

        return find_column_obstacle(self.session, fragment, (recursion_step,))

    def begin(
        self,
        fragment: Fragment,
        name: str,
        views: Mapping[str, str] = NO_VIEWS,
        of: object = None,
    ) -> BucketedRemote | StateRemote:
        """Return a remote for a part; with a checkpoint, it continues the state of an earlier
        process.

        Parameters
        ----------
        name: distinguishes parts with equal plans.
        views: the fingerprint of the query of each of its views, by name.
        of: the database; its whole parts over the same tables share state.

        Raises
        ------
        OffloadError: the state of an earlier process cannot be read, or is pickled and not trusted;
            or the folder cannot be written.
        """
        with writing(self._folder):
            return self._begin(fragment, name, views, of)

    def _begin(
        self, fragment: Fragment, name: str, views: Mapping[str, str], of: object
    ) -> BucketedRemote | StateRemote:
        """Return the remote of a part: a shared state if others may share it, else one of its own.

        Names of views are recorded if the state is kept.
        """
        is_anew = self._starts_empty(fragment)
        is_kept = self._is_kept and not is_anew
        remote: BucketedRemote | StateRemote | None = self._join_shared(
            fragment, of, is_kept=is_kept
        )
        if remote is None:
            digest = f"{ANEW}{uuid4().hex}" if is_anew else _part_digest(fragment, name)
            folder = f"{self._folder}/{self._free_name(digest)}"
            remote = self._begun[folder] = self._make_remote(fragment, folder, is_kept=is_kept)
        remote.adopt = self._adopt
        if is_kept and views:
            self._record_views(remote, views)
        return remote

    def _join_shared(self, fragment: Fragment, of: object, *, is_kept: bool) -> StateRemote | None:
        """Make a remote that shares the state of others; return None if the part may not share."""
        from spark_backend.fragments.remote import StateRemote
        from spark_backend.fragments.sharing import SharingStates, may_share

        if of is None or not may_share(fragment):
            return None
        self._sharing = self._sharing or SharingStates(self.session, self._folder)
        folder, state = self._sharing.place_for(fragment, of, is_kept=is_kept)
        self._begun[folder] = state
        return StateRemote(self.session, fragment, folder, stable=is_kept, shared=state)

    def _starts_empty(self, fragment: Fragment) -> bool:
        """Return True if the state of a part does not record the version of a table on Spark that
        it has read.

        A whole part does so for a stream on Spark, whose rows are all kept; other tables may be
        read from files that change between processes. A stream of events keeps none.
        """
        if any(map(reads_stream, fragment.inputs)):
            return True
        names = self._on_spark if fragment.is_whole else self._on_spark | self._streamed
        return any(t.name in names for node in fragment.inputs for t in tables(node))

    def _make_remote(
        self, fragment: Fragment, folder: str, *, is_kept: bool
    ) -> BucketedRemote | StateRemote:
        """Return a remote with a state of its own in `folder`: whole queries in columns, other
        parts by buckets."""
        from spark_backend.bucketed.remote import BucketedRemote
        from spark_backend.fragments.remote import StateRemote
        from spark_backend.recursion.compile import recursion_step

        if fragment.is_whole:
            return StateRemote(
                self.session, fragment, folder, stable=is_kept, makers=(recursion_step,)
            )
        trust = self._trust or folder in self._written
        made = BucketedRemote(self.session, fragment, folder, stable=is_kept, trust=trust)
        self._written.add(folder)
        return made

    def _record_views(self, remote: BucketedRemote | StateRemote, views: Mapping[str, str]) -> None:
        """Record the views whose state is kept, and log the views that start empty."""
        from spark_backend.state.checkpoint import ViewLedger

        ledger = self._ledger = self._ledger or ViewLedger(self.session, self._folder)
        changed = ledger.changed(views) if remote.resumed is None else []
        if changed:
            names = ", ".join(f"{name!r}" for name in changed)
            remote.begun_anew = f"begun anew: the query of {names} is another than was kept"
            log.warning("offloading: %s in %s", remote.begun_anew, self._folder)
        ledger.note(views)

    def scan(self, fragment: Fragment, name: str) -> ScanRemote:
        """Return a remote that fetches rows of a table on Spark."""
        from spark_backend.tables.table import ScanRemote

        return ScanRemote(self.session, fragment)

    def rows(self, rows: Any, row_type: Any, key: Any, name: str) -> SparkRows:
        """Return the rows of a table on Spark, with a folder for their changes."""
        from spark_backend.tables.frames import Frames
        from spark_backend.tables.table import SparkRows

        folder = f"{self._folder}/{self._free_name(f'table-{_short_digest(name)}')}"
        frames = Frames(self.session, rows, row_type, folder, key=key, name=name)
        self._on_spark.add(name)
        found = self._begun[folder] = SparkRows(self.session, frames, is_kept=self._is_kept)
        return found

    def stream(self, rows: Any, row_type: Any, key: Any, name: str, options: StreamOptions) -> Feed:
        """Return the feed of a table on Spark, and its rows.

        The checkpoint of the query is below the folder of the rows.
        """
        from spark_backend.streams.feed import make_feed

        folder = f"{self._folder}/{self._free_name(f'table-{_short_digest(name)}')}"
        found = make_feed(self.session, rows, row_type, folder, key, name, options, self._is_kept)
        self._begun[folder] = found.rows
        self._streamed.add(name)
        return found

    def spill(self, name: str, row_type: Any, rows: Rows) -> SpilledStore | SpilledKeyedStore:
        """Return a store on disk for the rows of a table that only parts on Spark read."""
        from spark_backend.parts.spilled import SpilledStore
        from spark_backend.parts.spilled_keyed import SpilledKeyedStore

        folder = f"{self._spilled}/{name}-{uuid4().hex}"
        with writing(folder):
            if isinstance(rows, KeyedStore):
                return SpilledKeyedStore(folder, row_type, rows)
            return SpilledStore(folder, rows)

    def frame(self, remote: Any, pairs: Iterable[Pair], row_type: Any) -> Any:
        """Return the rows of a view as a DataFrame: from a remote, or the given ones."""
        from spark_backend.codec.schema import infer_type
        from spark_backend.tables import table

        if hasattr(remote, "to_spark"):
            return self.session.given(remote.to_spark(row_type))
        given = list(pairs if remote is None else remote.contents())
        return table.pairs_to_columns(self.session, given, infer_type(given, row_type))

    def nested(
        self, fragment: Fragment, parts: Sequence[tuple[Any, Sequence[ExternalInput]]]
    ) -> NestRows | None:
        """Return the rows of a nest with levels in parts."""
        from spark_backend.fragments.sharing import NestRows

        return NestRows(self.session, fragment, parts, self._folder)

    def target(self, place: str, options: SinkOptions) -> SinkTarget:
        """Return the target of a sink: a folder, or a table of the catalog.

        Raises
        ------
        OffloadError: the target cannot be read.
        """
        from spark_backend.sinks.changes_folder import ChangesFolder
        from spark_backend.sinks.rows_folder import RowsFolder

        def make_target(folder: str) -> FrameTarget:
            if options.mode == "changes":
                return ChangesFolder(folder, row_type=options.row_type, session=self.session)
            return RowsFolder(
                folder, key=options.key, row_type=options.row_type, session=self.session
            )

        if "/" in place or os.sep in place:
            return make_target(place)
        from spark_backend.sinks.outbox import CatalogTarget

        return CatalogTarget(self.session, place, make_target)

    def outbox(self, name: str | None, row_type: Any) -> FileOutbox | None:
        """Return an outbox of batches that wait for a receiver; None without a checkpoint.

        Raises
        ------
        OffloadError: there is a checkpoint, but no name for the outbox.
        """
        from spark_backend.sinks.outbox import FileOutbox

        if not self._is_kept:
            return None
        if name is None:
            raise OffloadError(
                "a sink needs a name, by which a later process finds its batches\n"
                "  name the view, or say changes_to(..., name=...)"
            )
        return FileOutbox(
            f"{self._folder}/sink-{_short_digest(name)}", row_type=row_type, session=self.session
        )

    def frame_target(
        self, function: Callable[[Any, int], object], name: str | None, row_type: Any
    ) -> FrameTarget:
        """Return a target that calls a function with DataFrames and batch numbers.

        Raises
        ------
        OffloadError: there is a checkpoint, but no name for its batches.
        """
        from spark_backend.sinks.outbox import FileOutbox, FramesTarget

        outbox = self.outbox(name, row_type)
        if outbox is None:
            folder = f"{self._folder}/sink-{uuid4().hex}"
            outbox = FileOutbox(folder, row_type=row_type, session=self.session)
        return FramesTarget(self.session, function, outbox)

    def progress(self, name: str, rows: int) -> AbstractContextManager[None]:
        """Return a context that shows the progress of sending or awaiting `rows` rows at a
        terminal."""
        return show_progress(name, rows)

    def release(self) -> None:
        """Return the memory of moved rows to the system."""
        from spark_backend.cluster.trim import trim_memory

        trim_memory()

    def open(self) -> None:
        """Register a database that uses the back end.

        Raises
        ------
        OffloadError: the folder is in use, or cannot be written.
        """
        if self._users == 0:
            if self._is_kept:
                self._lock = lock_folder(self._folder)
            else:
                with writing(self._folder):
                    Path(self._folder).mkdir(0o700, parents=True, exist_ok=True)
        self._users += 1

    def close(self) -> None:
        """Unregister a database.

        With the last one, the Spark session stops if the library started it. A checkpoint given by
        the user is kept. The back end can be opened again.
        """
        self._users -= 1
        if self._users > 0:
            return
        begun, self._begun = self._begun, {}
        for remote in begun.values():
            if not remote.is_closed:
                remote.stop()
        self._ledger = self._sharing = None
        self.session.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        gone = self._spilled if self._is_kept else self._folder
        shutil.rmtree(gone, ignore_errors=True)

    def _free_name(self, name: str) -> str:
        """Return the name, or a numbered one if a part of that name is open."""
        names = [name, *(f"{name}-{number}" for number in range(2, len(self._begun) + 3))]
        return next(n for n in names if not self._is_open(f"{self._folder}/{n}"))

    def _is_open(self, folder: str) -> bool:
        """Return True if an open remote of this process has its state in the folder."""
        remote = self._begun.get(folder)
        return remote is not None and not remote.is_closed


def _part_digest(fragment: Fragment, name: str) -> str:
    """Return a short digest of a part, which is the same in any process."""
    return _short_digest(f"{name}\n{fingerprint(fragment.node, fragment.inputs)}")


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def _checkpoint_folder(checkpoint: str | os.PathLike[str] | None) -> str:
    """Return the folder of the state: the checkpoint, or a new temporary folder."""
    if checkpoint is None:
        return str(Path(tempfile.gettempdir()) / f"reactive-collections-{uuid4().hex}")
    return absolute_path(os.fspath(checkpoint))
