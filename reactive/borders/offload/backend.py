"""Where parts of queries can go, as whoever offers that has to be; `SparkOffload` is it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from reactive.engine.collections.zset import Pair
from reactive.engine.remote import external, fragments, remote_tree, streams
from reactive.engine.remote import remote as remote_parts
from reactive.engine.storage.keyed_store import KeyedStore
from reactive.engine.storage.store import BagStore

if TYPE_CHECKING:
    from reactive.borders.offload.spilling import Spilled
    from reactive.borders.sinks.making import SinkOptions
    from reactive.borders.sinks.target import Outbox, Target


class Offload(Protocol):
    """Where parts of queries can go, and from which size on. `SparkOffload` is one."""

    threshold_rows: int | None
    """How many rows an operator may hold in the process; None for any number."""
    threshold_bytes: int | None
    flush_interval: float | None
    """How many seconds there are between flushes that nobody asks for; None for no such ones."""
    max_waiting: int | None
    """How many entries may wait for a flush before writers wait too; None for any number."""
    max_waiting_bytes: int | None
    """About how many bytes they may take, of all parts; None for any number."""

    def refuse(self, fragment: fragments.Fragment) -> str | None:
        """Why a part cannot go there, if it cannot."""
        ...

    def apart(self, fragment: fragments.Fragment) -> str | None:
        """Why a whole part of a plan cannot be done there as one, if it cannot."""
        ...

    def begin(
        self,
        fragment: fragments.Fragment,
        name: str,
        views: Mapping[str, str] = ...,
        of: object = None,
    ) -> remote_parts.Remote:
        """A place for a part, with what an earlier process left of the same.

        Parameters
        ----------
        name: the same for the same query.
        views: of the views that it is for and that have a name, the fingerprint of the query.
        of: the database; parts of one may share what they keep. What waits has been flushed.
        """
        ...

    def scan(self, fragment: fragments.Fragment, name: str) -> remote_parts.Remote:
        """What fetches rows that are fed; nothing of them is kept."""
        ...

    def rows(self, rows: Any, row_type: Any, key: Any, name: str) -> external.ExternalRows:
        """The rows of a table that are there already."""
        ...

    def stream(
        self, rows: Any, row_type: Any, key: Any, name: str, options: streams.StreamOptions
    ) -> streams.ExternalStream:
        """What feeds a table that is there, and its rows."""
        ...

    def frame(self, remote: Any, pairs: Iterable[Pair], row_type: Any) -> Any:
        """Rows as a DataFrame: the output of a remote, or what is given if that is None."""
        ...

    def nested(
        self,
        fragment: fragments.Fragment,
        parts: Sequence[tuple[Any, Sequence[external.ExternalInput]]],
    ) -> remote_tree.AllRows | None:
        """All rows of a nest of which parts have the levels, if they can be had there.

        Parameters
        ----------
        parts: remotes, with their inputs that are fed, from the beginning on.
        """
        ...

    def target(self, place: str, options: SinkOptions) -> Target:
        """What a view is written to."""
        ...

    def outbox(self, name: str | None, row_type: Any) -> Outbox | None:
        """Where batches of changes wait for a later process, if anything is kept for one."""
        ...

    def framed(
        self, function: Callable[[Any, int], object], name: str | None, row_type: Any
    ) -> Target:
        """What calls a function of frames of changes, and numbers."""
        ...

    def spill(self, name: str, row_type: Any, rows: BagStore | KeyedStore) -> Spilled:
        """A store that takes little of the process, for the rows of a table, which are still where
        they were."""
        ...

    def progress(self, name: str, rows: int) -> Any:
        """A context while `rows` rows are handed over, or awaited."""
        ...

    def release(self) -> None:
        """Something has moved there: give its memory back to the system."""
        ...

    def open(self) -> None:
        """A database that uses it has been made."""
        ...

    def close(self) -> None:
        """One of them is closed; what was begun is freed with the last."""
        ...
