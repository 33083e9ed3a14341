"""What is elsewhere: a table for people, and its lines for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

from optimizer.plans.explain import headline
from reactive.borders.offload import levels
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.borders.offload.offload import Offloading
    from reactive.engine.dataflow.node import Node


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
            table.add_column(field.name, justify="right" if _is_number(field.type) else "left")
        for line in self._lines:
            table.add_row(*(_text(value) for value in astuple(line)))
        return table


def _is_number(kind: Any) -> bool:
    return kind in ("int", "float", int, float)


def _text(value: Any) -> str:
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
        operator=levels.level_of(node) or ("" if node.plan is None else headline(node.plan)),
        where=operator.describe() + ("" if operator.is_filled else " (being handed over)"),
        rows=rows,
        bytes=size,
        flushes=operator.flushes,
        lag=operator.lag,
        seconds=operator.latency,
        error=wrong,
        note=operator.remote.begun_anew,
    )
