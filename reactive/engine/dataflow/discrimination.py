"""Forward a delta to its readers; readers that compare a field get only the rows they need.

    invoke --+-- where i.name == "gc"        --+
             +-- where i.name == "clone"       +--  one look-up of i.name finds the reader of a row
             +-- where i.name == "finalize"  --+
             +-- where i.opcode == 182              gets every row

A query that compares a field with constants drops all other rows anyway. If many queries do so, the
field of each row is looked up once, in a dictionary from values to readers.

State:  none.
Cost:   O(|dL|), and O(1) more per row and reader that does not compare that field.
Source: the discrimination network of C. L. Forgy, *Rete*, 1982.

Limits of the queued deltas, of a database or of one subscription (`QueueLimits`).

State:  the length of the queue when its bytes were last estimated.
Cost:   a comparison per delta; O(1) more per delta each time that the queue has doubled.

`holds_all_rows` tests if all rows that a node emitted are held, so that a late view can start with
them:

table, not stored (rows have flowed)    no
  where                                 if a view of it holds its rows
    distinct                            by itself
      select                            below
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from optimizer.errors import PlanError
from optimizer.plans.field_values import Path, path_reader
from reactive.engine.collections.zset import Pair, UniformDelta
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.leaves import GroupRows, ViewRows
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node


Reader = tuple["Node", int]
Enqueue = Callable[["Node"], None]
WORTHWHILE = 12
"""Minimum number of readers that compare one field for it to be looked up."""


class DiscriminationNetwork:
    """The readers of a node's output that are found by a field."""

    __slots__ = ("_by_field",)

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._by_field: list[_ByField] = []
        while field := _most_compared(readers):
            found = [reader for reader in readers if field in reader[0].constant_tests]
            self._by_field.append(_ByField(field, found))
            readers = [r for r in readers if field not in r[0].constant_tests]

    @property
    def found(self) -> list[Reader]:
        """The readers."""
        return [reader for readers in self._by_field for reader in readers.all]

    def group_of(self, node: Node) -> tuple[Path, int] | None:
        """Return the field by which a reader is found, and the number of its readers; else None."""
        for readers in self._by_field:
            if any(reader is node for reader, _ in readers.all):
                return readers.field, len(readers.all)
        return None

    def send(self, delta: Sequence[Any], enqueue: Enqueue) -> None:
        """Put the rows of a delta into the inboxes of the readers that need them."""
        for readers in self._by_field:
            readers.send(delta, enqueue)


def find_network(readers: Sequence[Reader]) -> DiscriminationNetwork | None:
    """Return the network of the readers that are found by a field; None if these are few."""
    made = None if len(readers) < WORTHWHILE else DiscriminationNetwork(readers)
    return made if made is not None and made.found else None


class _ByField:
    """Readers that compare a field of their rows with constants."""

    __slots__ = ("_classes", "_read", "_wanted", "all", "field")

    def __init__(self, field: Path, readers: list[Reader]) -> None:
        self.field = field
        self._read = path_reader(field)
        self.all = readers
        wanted: dict[Any, list[int]] = {}
        for place, (node, _) in enumerate(readers):
            for value in node.constant_tests[field]:
                wanted.setdefault(value, []).append(place)
        self._wanted = wanted
        classes: dict[Path, frozenset[type] | None] = {}
        for node, _ in readers:
            for other, allowed in node.constant_tests.classes.items():
                known = classes.get(other)
                both = known if allowed is None else allowed if known is None else known & allowed
                classes[other] = both
        self._classes = [(path_reader(other), allowed) for other, allowed in classes.items()]
        """Fields read before the looked-up one, with the classes of values that cannot raise there;
        None for all classes."""

    def send(self, delta: Sequence[Any], enqueue: Enqueue) -> None:
        """Send each reader the rows that it needs; all rows if a field cannot be read."""
        try:
            chosen = self._chosen(delta)
        except Exception as error:  # an unhashable value, for example: the readers will raise
            reraise_asynchronous(error)
            send(self.all, delta, enqueue)
            return
        for place, items in chosen.items():
            part = UniformDelta(items, delta.weight) if type(delta) is UniformDelta else items
            send(self.all[place : place + 1], part, enqueue)

    def _chosen(self, delta: Sequence[Any]) -> dict[int, list[Any]]:
        """Return the items of a delta for each reader, by its place: rows of a batch, else pairs.

        Readers that need none are left out. Raises `TypeError` if a value may not compare.
        """
        is_batch = type(delta) is UniformDelta
        items: Sequence[Any] = delta.rows if type(delta) is UniformDelta else delta
        if len(items) == 1 and not self._classes:  # the code below, for one row
            value = self._read(items[0] if is_batch else items[0][0])
            if _is_found(type(value)):
                return {place: [items[0]] for place in self._wanted.get(value, ())}
        rows = items if is_batch else list(map(_row, items))
        values = list(map(self._read, rows))
        for read, allowed in self._classes:
            kinds = set(map(type, map(read, rows)))
            if allowed is not None and not allowed >= kinds:
                raise TypeError("values that may not compare")
        if not all(map(_is_found, set(map(type, values)))):
            raise TypeError("values with an equality of their own")
        chosen: dict[int, list[Any]] = {}
        for item, places in zip(items, map(self._wanted.get, values), strict=True):
            if places is not None:
                for place in places:
                    chosen.setdefault(place, []).append(item)
        return chosen


_row = itemgetter(0)
_EQUALITIES = frozenset(kind.__eq__ for kind in (str, int, bytes, float, object, tuple))


def _is_found(kind: Any) -> bool:
    """Return True if a dictionary finds a value of this class exactly where `==` holds."""
    return kind.__eq__ in _EQUALITIES


def send_found(
    delta: Sequence[Any],
    items: Sequence[Any],
    found: Sequence[Sequence[Reader]],
    enqueue: Enqueue,
) -> None:
    """Send each reader the items of a delta for which it was found."""
    wanted: dict[Reader, list[Any]] = {}
    for item, readers in zip(items, found, strict=True):
        for reader in readers:
            wanted.setdefault(reader, []).append(item)
    for reader, some in wanted.items():
        part = UniformDelta(some, delta.weight) if type(delta) is UniformDelta else some
        send((reader,), part, enqueue)


def send(readers: Sequence[Reader], delta: Sequence[Any], enqueue: Enqueue) -> None:
    """Put a delta into the inboxes of all these readers, and enqueue each reader once.

    The queue records whose inbox must be emptied if the walk is interrupted.
    """
    for node, port in readers:
        if not node.dirty:
            enqueue(node)
            node.dirty = True
        node.inbox[port] = delta


def _most_compared(readers: Sequence[Reader]) -> Path | None:
    """Return the field that most readers compare; ties go to more values.

    Return None if no field is compared by `WORTHWHILE` readers.
    """
    values: dict[Path, list[frozenset[Any]]] = {}
    for node, _ in readers:
        for field, wanted in node.constant_tests.items():
            values.setdefault(field, []).append(wanted)
    fields = [field for field, wanted in values.items() if len(wanted) >= WORTHWHILE]
    worth = {
        field: (len(values[field]), len(frozenset().union(*values[field]))) for field in fields
    }
    return max(fields, key=lambda field: worth[field], default=None)


Subscribers = Sequence["weakref.ref[Any]"]
Delivery = tuple[Subscribers, Delta[Any]]
OFTEN = 64
"""Deltas in the queue before their bytes are estimated; estimated again each time it doubles."""
SAMPLED = 8
"""Number of rows used to estimate the bytes of a delta."""
OVERHEAD = 400
"""Bytes of a delta without rows."""


@dataclass(slots=True)
class QueueLimits:
    """Limits of the queued deltas, by number and by bytes, and the policy when they are exceeded.

    >>> limits = QueueLimits(most=2, when_full="merge")
    >>> [limits.are_exceeded(length, list) for length in (1, 2, 3)]
    [False, False, True]
    """

    most: int = 10_000
    most_bytes: int = 256 * 2**20
    when_full: str = "block"
    _looked: int = 0
    _least: int = 0
    _heavy: int = 0
    """Length of the queue when it was found to hold too many bytes, until half of it is delivered.
    """

    def __post_init__(self) -> None:
        for name in ("most", "most_bytes"):
            given = getattr(self, name)
            if type(given) is not int or given < 1:
                what = {"most": "max_waiting", "most_bytes": "max_waiting_bytes"}[name]
                raise PlanError(f"{what}={given!r} is no limit\n  give an integer from 1 on")
        if self.when_full not in ("block", "merge", "close"):
            raise PlanError(
                f"when_full={self.when_full!r} is nothing that can be done\n"
                "  give 'block', 'merge' or 'close'"
            )

    def are_exceeded(self, length: int, waiting: Callable[[], Iterable[Delta[Any]]]) -> bool:
        """Return True if more deltas, or more bytes by estimate, are queued than allowed."""
        if length > max(self.most, 2 * self._least) or 0 < self._heavy <= length:
            return True
        if length < self._heavy // 2:
            self._heavy = 0
        if length < max(2 * self._looked, OFTEN):
            if length < OFTEN:
                self._looked = 0
            return False
        self._looked = length
        if sum(map(estimate_delta_bytes, waiting())) > self.most_bytes:
            self._heavy = length
        return bool(self._heavy)

    def of_one(self, maxsize: int | None, when_full: str | None) -> QueueLimits:
        """Return the limits of one subscription, which may set its own."""
        most = self.most if maxsize is None else maxsize
        policy = when_full or ("merge" if self.when_full == "block" else self.when_full)
        return QueueLimits(most, self.most_bytes, policy)

    def note_merged(self, length: int) -> None:
        """Record the number of deltas left after a merge: at least one per view."""
        self._least = length
        self._looked = self._heavy = 0


def estimate_delta_bytes(delta: Delta[Any]) -> int:
    """Estimate the bytes of a delta from its first rows and their values."""
    pairs = delta._pairs
    some = [row for row, _ in pairs[:SAMPLED]]
    inside = [value for row in some if isinstance(row, tuple) for value in row]
    size = sum(map(sys.getsizeof, some)) + sum(map(sys.getsizeof, inside))
    return OVERHEAD + size * len(pairs) // max(len(some), 1)


@dataclass(slots=True)
class Counts:
    """Counts of writers that waited, or stopped waiting, and of merged deltas."""

    late: int = 0
    """Writers that continued before their commit was delivered."""
    blocked: int = 0
    """Writers that waited because too many deltas were queued."""
    merged: int = 0
    """Deltas merged into others because too many were queued."""


def merge_deliveries(waiting: Sequence[Delivery]) -> list[Delivery]:
    """Merge the deltas that have the same subscribers; return the shorter list."""
    from reactive.engine.dataflow.merge_deltas import DeltaAccumulator

    found: dict[object, tuple[Subscribers, DeltaAccumulator]] = {}
    for place, (subscribers, delta) in enumerate(waiting):
        key = place if _needs_each(subscribers) else (id(subscribers),)
        kept = found.pop(key, None)  # placed like the newest merged delta
        if kept is None:
            kept = subscribers, DeltaAccumulator(delta)
        else:
            kept[1].add(delta)
        found[key] = kept
    told = [(subscribers, several.delta()) for subscribers, several in found.values()]
    return [(subscribers, delta) for subscribers, delta in told if delta is not None]


def _needs_each(subscribers: Subscribers) -> bool:
    """Return True if a subscriber needs each delta, as a history does."""
    found = [reference() for reference in subscribers]
    return any(getattr(each._callback, "needs_each", False) for each in found if each is not None)


def check_delivery(deliver: object, timeout: object) -> None:
    """Raise if `deliver` or `timeout` is invalid."""
    if deliver not in (None, "writer", "background"):
        raise PlanError(f"deliver={deliver!r} is nobody\n  give 'writer' or 'background'")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0
    ):
        raise PlanError(f"deliver_timeout={timeout!r} is no time\n  give the seconds to wait")


def holds_all_rows(node: Node) -> bool:
    """Return True if all rows that the node emitted are held: by the node, its view, or below.

    An operator that drops what it has emitted holds all only if no row has come to it: views below
    it do not help, and so it is with what is below those. The log of a durable stream does not
    help either, as the operator is not stepped again.
    """
    seen, waiting = {(node, False)}, [(node, False)]
    while waiting:
        current, is_dropped = waiting.pop()
        if not is_dropped and view_rows_of(current) is not None:
            continue
        if not current.inputs and not _is_whole(current, is_dropped):
            return False
        drops = is_dropped or current.drops
        sources = () if current.contents is not None and not drops else current.inputs
        found = [each for source in sources if (each := (source, drops)) not in seen]
        waiting += found
        seen.update(found)
    return True


def view_rows_of(node: Node) -> Collection[Pair] | None:
    """Return the rows that a view holds for a node that does not hold its own output.

    Return None if the node holds its output, or no view holds it.
    """
    if node.contents is not None and not node.forgets:
        return None
    for reader, _ in node.consumers:
        if (
            isinstance(reader.operator, ViewRows | GroupRows)
            and reader.leaf is not None
            and not reader.deferred
        ):
            return reader.operator.items()
    return None


def _is_whole(source: Node, is_dropped: bool) -> bool:
    """Return True if a table, or its log, has all rows that it has emitted.

    is_dropped: an operator above has dropped rows.
    """
    if source.contents is None or not source.forgets:
        return True
    if source.lost is not None:
        return not is_dropped
    try:
        source.contents()
    except TableError:
        return False
    return True


def as_delta(found: Iterable[Any]) -> Sequence[Any]:
    """Return the output of a node as a delta of its own: a batch is one already."""
    return found if isinstance(found, UniformDelta) else list(found)
