"""Backends: where parts of queries can go, and the table of the parts that are there.

Numbers of bytes as people say them: 268435456, or "256MB".

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


# Where parts of queries can go, as whoever offers that has to be; `SparkOffload` is it.


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
    ) -> remote.Remote:
        """A place for a part, with what an earlier process left of the same.

        Parameters
        ----------
        name: the same for the same query.
        views: of the views that it is for and that have a name, the fingerprint of the query.
        of: the database; parts of one may share what they keep. What waits has been flushed.
        """
        ...

    def scan(self, fragment: fragments.Fragment, name: str) -> remote.Remote:
        """What fetches rows that are fed; nothing of them is kept."""
        ...

    def rows(self, rows: Any, row_type: Any, key: Any, name: str) -> remote.ExternalRows:
        """The rows of a table that are there already."""
        ...

    def stream(
        self, rows: Any, row_type: Any, key: Any, name: str, options: remote.StreamOptions
    ) -> remote.ExternalStream:
        """What feeds a table that is there, and its rows."""
        ...

    def frame(self, remote: Any, pairs: Iterable[Pair], row_type: Any) -> Any:
        """Rows as a DataFrame: the output of a remote, or what is given if that is None."""
        ...

    def nested(
        self,
        fragment: fragments.Fragment,
        parts: Sequence[tuple[Any, Sequence[remote.ExternalInput]]],
    ) -> remote_tree.AllRows | None:
        """All rows of a nest of which parts have the levels, if they can be had there.

        Parameters
        ----------
        parts: remotes, with their inputs that are fed, from the beginning on.
        """
        ...

    def target(self, place: str, options: SinkOptions) -> SinkTarget:
        """What a view is written to."""
        ...

    def outbox(self, name: str | None, row_type: Any) -> Outbox | None:
        """Where batches of changes wait for a later process, if anything is kept for one."""
        ...

    def framed(
        self, function: Callable[[Any, int], object], name: str | None, row_type: Any
    ) -> SinkTarget:
        """What calls a function of frames of changes, and numbers."""
        ...

    def spill(self, name: str, row_type: Any, rows: BagStore | KeyedStore) -> SpilledRows:
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


# What is elsewhere: a table for people, and its lines for programs.


@dataclass(frozen=True, slots=True)
class Offloaded:
    """An operator that is elsewhere, or that ought to be and has to stay.

    >>> from reactive import Offloaded
    >>> Offloaded("totals", "distinct", "Spark", 10, 99, flushes=1, lag=0, seconds=0.5).rows
    10
    """

    view: str
    """The views that depend on it."""
    operator: str
    where: str
    """Where it is, how its rows are kept, and what runs where; or why it stays."""
    rows: int
    """Rows of its inputs, as they are kept there."""
    bytes: int
    flushes: int
    lag: int
    """Changes that wait for the next flush."""
    seconds: float
    """How long the last flush took."""
    error: str = ""
    """What went wrong last, if nothing went well since."""
    note: str = ""
    """Whether it began anew, and why, although state of its views had been kept."""


class OffloadStatus(Sequence[Offloaded]):
    """The operators of a database that are elsewhere. Prints as a table.

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
    """The lines of now."""
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
    """How many bytes somebody means; None for no limit.

    Parameters
    ----------
    name: of the parameter, for the error.

    Raises
    ------
    OffloadError: it is no number of bytes above 0.

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
    """How many rows somebody means; None for no limit.

    Raises
    ------
    OffloadError: it is no number of rows, from 0 on.

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
    match = _WRITTEN.fullmatch(said)
    if match is None or (match[3] and not match[2]):
        return None
    return int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()])
