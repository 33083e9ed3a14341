"""Backends of offloading, the status table of remote parts, and sizes in bytes as text.

Sizes are numbers or text: 268435456, or "256MB".

kB MB GB TB         powers of 1000
KiB MiB GiB TiB     powers of 1024
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

from optimizer.plans.explain import headline
from reactive.borders.offload import overflow
from reactive.engine.collections.zset import Pair
from reactive.engine.remote import fragments, remote, remote_tree
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import BagStore
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.borders.offload.offload import Offloading
    from reactive.borders.offload.spilling import SpilledRows
    from reactive.borders.sinks.durable_outbox import Outbox, SinkTarget
    from reactive.borders.sinks.making import SinkOptions
    from reactive.engine.dataflow.node import Node


# The protocol of a backend, which `SparkOffload` implements.


class Offload(Protocol):
    """A backend for remote parts, with the thresholds for moving them. `SparkOffload` is one."""

    threshold_rows: int | None
    """The most rows that an operator may hold in the process; None for no limit."""
    threshold_bytes: int | None
    flush_interval: float | None
    """The seconds between two automatic flushes; None for none."""
    max_waiting: int | None
    """The most changes that may wait for a flush before writers wait too; None for no limit."""
    max_waiting_bytes: int | None
    """About the most bytes that they may take, of all parts; None for no limit."""

    def refuse(self, fragment: fragments.Fragment) -> str | None:
        """Return the reason why a part cannot move there; None if it can."""
        ...

    def apart(self, fragment: fragments.Fragment) -> str | None:
        """Return the reason why a whole part cannot run there as one; None if it can."""
        ...

    def begin(
        self,
        fragment: fragments.Fragment,
        name: str,
        views: Mapping[str, str] = ...,
        of: object = None,
    ) -> remote.Remote:
        """Create the place of a part, with the state that an earlier process left of it.

        Parameters
        ----------
        name: the same for the same query.
        views: the fingerprints of the queries of the named views that use it.
        of: the database; parts of one database may share their state. All changes are flushed.
        """
        ...

    def scan(self, fragment: fragments.Fragment, name: str) -> remote.Remote:
        """Create a remote that only fetches rows that are fed; it keeps none."""
        ...

    def rows(self, rows: Any, row_type: Any, key: Any, name: str) -> remote.ExternalRows:
        """Open the existing rows of a table."""
        ...

    def stream(
        self, rows: Any, row_type: Any, key: Any, name: str, options: remote.StreamOptions
    ) -> remote.ExternalStream:
        """Open the stream that feeds an existing table, and its rows."""
        ...

    def frame(self, remote: Any, pairs: Iterable[Pair], row_type: Any) -> Any:
        """Return rows as a DataFrame: the output of `remote`, or `pairs` if that is None."""
        ...

    def nested(
        self,
        fragment: fragments.Fragment,
        parts: Sequence[tuple[Any, Sequence[remote.ExternalInput]]],
    ) -> remote_tree.AllRows | None:
        """Return all rows of a nest whose levels are parts; None if they cannot be read there.

        Parameters
        ----------
        parts: remotes, with their inputs that are fed, from the beginning on.
        """
        ...

    def target(self, place: str, options: SinkOptions) -> SinkTarget:
        """Return the target for writing a view."""
        ...

    def outbox(self, name: str | None, row_type: Any) -> Outbox | None:
        """Return the outbox that keeps batches for later processes; None if nothing is kept."""
        ...

    def frame_target(
        self, function: Callable[[Any, int], object], name: str | None, row_type: Any
    ) -> SinkTarget:
        """Return the target that calls a function with frames of changes, and numbers."""
        ...

    def spill(self, name: str, row_type: Any, rows: BagStore | KeyedStore) -> SpilledRows:
        """Return a remote store for the rows of a table, which have not moved yet."""
        ...

    def progress(self, name: str, rows: int) -> Any:
        """Return a context for handing over, or awaiting, `rows` rows."""
        ...

    def release(self) -> None:
        """Return memory to the system, after a part has moved."""
        ...

    def open(self) -> None:
        """Register a database that uses the backend."""
        ...

    def close(self) -> None:
        """Unregister a database; the last one frees all resources."""
        ...


# The status of remote parts: printed as a table, iterated as lines.


@dataclass(frozen=True, slots=True)
class Offloaded:
    """An operator that is remote, or that exceeds the threshold but must stay.

    >>> from reactive import Offloaded
    >>> Offloaded("totals", "distinct", "Spark", 10, 99, flushes=1, lag=0, seconds=0.5).rows
    10
    """

    view: str
    """The views that depend on it."""
    operator: str
    where: str
    """Its place, the form of its rows, and what runs where; or the reason why it stays."""
    rows: int
    """The rows of its inputs, as stored remotely."""
    bytes: int
    flushes: int
    lag: int
    """The changes that wait for the next flush."""
    seconds: float
    """The seconds that the last flush took."""
    error: str = ""
    """The last error; empty after a success."""
    note: str = ""
    """The reason why it began anew although state of its views was stored; empty if it did not."""


class OffloadStatus(Sequence[Offloaded]):
    """The remote operators of a database. Prints as a table.

    >>> from reactive import Database
    >>> len(Database().offload_status())
    0
    """

    def __init__(self, lines: Sequence[Offloaded]) -> None:
        self._lines = tuple(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: Any) -> Any:
        return self._lines[place]

    def __iter__(self) -> Iterator[Offloaded]:
        return iter(self._lines)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._lines)) or "nothing is offloaded"

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(title="offloaded operators")
        for field in fields(Offloaded):
            table.add_column(
                field.name, justify="right" if _is_numeric_field(field.type) else "left"
            )
        for line in self._lines:
            table.add_row(*(_cell_text(value) for value in astuple(line)))
        return table


def _is_numeric_field(kind: Any) -> bool:
    return kind in ("int", "float", int, float)


def _cell_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


def status(of: Offloading) -> OffloadStatus:
    """Return the status: a line for each remote node, and for each that is too big but stays."""
    lines = [_line(node) for node in of.remotes]
    refused = [] if of.overflow is None else of.overflow.refused
    error = None if of.overflow is None else of.overflow.background.error
    lines += [
        Offloaded("", headline(node), f"in process: {why}", 0, 0, 0, 0, 0.0)
        for node, why in refused
    ]
    if error is not None:
        lines.append(Offloaded("", "the background thread", "", 0, 0, 0, 0, 0.0, str(error)))
    return OffloadStatus(lines)


def _line(node: Node) -> Offloaded:
    """Return the report on a remote node; with its error, and 0 rows, if it cannot be measured."""
    operator = node.operator
    wrong, (rows, size) = "" if operator.lost is None else str(operator.lost), (0, 0)
    try:
        rows, size = operator.remote.footprint()
    except OffloadError as error:
        wrong = wrong or str(error)
    return Offloaded(
        view=", ".join(sorted({str(channel) for channel in node.leaves()})),
        operator=overflow.nest_level_of(node) or ("" if node.plan is None else headline(node.plan)),
        where=operator.describe() + ("" if operator.is_filled else " (being handed over)"),
        rows=rows,
        bytes=size,
        flushes=operator.flushes,
        lag=operator.lag,
        seconds=operator.latency,
        error=wrong,
        note=operator.remote.begun_anew,
    )


_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def byte_count(said: int | str | None, name: str) -> int | None:
    """Convert a size to bytes; None means no limit.

    Parameters
    ----------
    name: the name of the parameter, for the error.

    Raises
    ------
    OffloadError: it is not a positive number of bytes.

    Examples
    --------
    >>> byte_count("256MB", "max_waiting_bytes"), byte_count("1.5 KiB", "threshold_bytes")
    (256000000, 1536)
    """
    found = _parse_bytes(said) if isinstance(said, str) else said
    if found is None and said is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise OffloadError(
            f"{name}={said!r} is no number of bytes\n"
            '  give one above 0, such as "256MB", "1GiB" or 268435456, or None for no limit'
        )
    return found


def row_count(said: int | None, name: str) -> int | None:
    """Check a number of rows; None means no limit.

    Raises
    ------
    OffloadError: it is not a non-negative integer.

    Examples
    --------
    >>> row_count(1_000_000, "max_waiting")
    1000000
    """
    if said is not None and (not isinstance(said, int) or isinstance(said, bool) or said < 0):
        raise OffloadError(
            f"{name}={said!r} is no number of rows\n  give one, or None for no limit; "
            f"bytes are said by {_BYTES[name]}"
        )
    return said


_BYTES = {"max_waiting": 'max_waiting_bytes="256MB"', "threshold_rows": 'threshold_bytes="1GB"'}


def _parse_bytes(said: str) -> int | None:
    """Return the bytes that a text such as "256MB" names; None if it names no size."""
    match = _WRITTEN.fullmatch(said)
    if match is None or (match[3] and not match[2]):
        return None
    return int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()])
