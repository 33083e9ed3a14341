"""Forward a delta to its readers; to a reader that wants rows of certain values, only these.

    invoke --+-- where i.name == "gc"        --+
             +-- where i.name == "clone"       +--  one look at i.name finds who wants the row
             +-- where i.name == "finalize"  --+
             +-- where i.opcode == 182              is asked of every row

A query that compares a field with constants drops all other rows anyway. Where several do, the
field of each row is looked up once, in a dictionary from values to readers.

State:  none.
Cost:   O(|dL|), and O(1) more per row and reader that does not compare that field.
Source: the discrimination network of C. L. Forgy, *Rete*, 1982.

Limits of what may wait to be told: deltas of commits, or of one subscription.

State:  how long the queue was when its bytes were last estimated.
Cost:   a comparison; of estimating bytes, O(1) per delta, each time that twice as many wait.

Whether all that a node has emitted so far is held, so that a late view can begin with it.

table, not stored (rows have flowed)    no
  where                                 if a view of it holds its rows
    distinct                            by itself
      select                            below
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from optimizer.errors import PlanError
from reactive.engine.collections.zset import Pair, UniformDelta
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.leaves import ViewRows
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node


Reader = tuple["Node", int]
Enqueue = Callable[["Node"], None]
WORTHWHILE = 12
"""Readers that compare the same field, from which on it is looked up."""


class DiscriminationNetwork:
    """All readers of a node's output: those who get all of it, and those found by a field."""

    __slots__ = ("_by_field", "_everything")

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._everything = list(readers)
        self._by_field: list[_ByField] = []
        while field := _most_compared(self._everything):
            found = [reader for reader in self._everything if field in reader[0].constant_tests]
            self._by_field.append(_ByField(field, found))
            self._everything = [r for r in self._everything if field not in r[0].constant_tests]

    @property
    def looks_up(self) -> bool:
        """Whether some readers are found by a field."""
        return bool(self._by_field)

    def send(self, delta: Sequence[Any], enqueue: Enqueue) -> None:
        """Put a delta into the inboxes of its readers, and enqueue each reader once."""
        send(self._everything, delta, enqueue)
        for readers in self._by_field:
            readers.send(delta, enqueue)


class _ByField:
    """Readers that compare a field of their rows with constants."""

    __slots__ = ("_classes", "_field", "_readers", "_wanted")

    def __init__(self, field: str, readers: list[Reader]) -> None:
        self._field = attrgetter(field)
        self._readers = readers
        wanted: dict[Any, list[int]] = {}
        for place, (node, _) in enumerate(readers):
            for value in node.constant_tests[field]:
                wanted.setdefault(value, []).append(place)
        self._wanted = wanted
        classes: dict[str, frozenset[type]] = {}
        for node, _ in readers:
            for name, allowed in node.constant_tests.classes.items():
                classes[name] = classes.get(name, allowed) & allowed
        self._classes = [(attrgetter(name), allowed) for name, allowed in classes.items()]
        """What is asked before the field cannot raise for rows whose fields are of these."""

    def send(self, delta: Sequence[Any], enqueue: Enqueue) -> None:
        try:
            chosen = self._chosen(delta)
        except Exception as error:  # a value without a hash, for example: the readers will see
            reraise_asynchronous(error)
            send(self._readers, delta, enqueue)
            return
        for place, items in chosen.items():
            part = UniformDelta(items, delta.weight) if type(delta) is UniformDelta else items
            send(self._readers[place : place + 1], part, enqueue)

    def _chosen(self, delta: Sequence[Any]) -> dict[int, list[Any]]:
        """What each reader gets: rows of a batch, pairs of another delta."""
        is_batch = type(delta) is UniformDelta
        items: Sequence[Any] = delta.rows if type(delta) is UniformDelta else delta
        if len(items) == 1 and not self._classes:  # as below, for one row
            value = self._field(items[0] if is_batch else items[0][0])
            if _is_found(type(value)):
                return {place: [items[0]] for place in self._wanted.get(value, ())}
        rows = items if is_batch else list(map(_row, items))
        values = list(map(self._field, rows))
        for read, allowed in self._classes:
            if not allowed.issuperset(map(type, map(read, rows))):
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
    """Whether a dictionary finds a value of this class exactly where `==` says so."""
    return kind.__eq__ in _EQUALITIES


def send(readers: Sequence[Reader], delta: Sequence[Any], enqueue: Enqueue) -> None:
    """Put a delta into the inboxes of all these readers, and enqueue each reader once.

    The queue knows whose inbox is to be emptied if the walk is interrupted.
    """
    for node, port in readers:
        if not node.dirty:
            enqueue(node)
            node.dirty = True
        node.inbox[port] = delta


def _most_compared(readers: Sequence[Reader]) -> str | None:
    """The field that most readers compare, if these are enough; best with many values."""
    values: dict[str, list[frozenset[Any]]] = {}
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
"""Deltas that wait before their bytes are estimated, again when twice as many do."""
SAMPLED = 8
"""Rows of a delta by which its bytes are estimated."""
OVERHEAD = 400
"""Bytes of a delta without rows."""


@dataclass(slots=True)
class QueueLimits:
    """Limits of the deltas that wait: their number, their bytes, and what happens to more.

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
    """Number of deltas that were too many bytes, until half of them have gone."""

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
        """Return whether more deltas wait than may, or more bytes, which are estimated."""
        if length > max(self.most, 2 * self._least) or 0 < self._heavy <= length:
            return True
        if length < self._heavy // 2:
            self._heavy = 0
        if length < max(2 * self._looked, OFTEN):
            if length < OFTEN:
                self._looked = 0
            return False
        self._looked = length
        if sum(map(bytes_of, waiting())) > self.most_bytes:
            self._heavy = length
        return bool(self._heavy)

    def of_one(self, maxsize: int | None, when_full: str | None) -> QueueLimits:
        """Return the limits of one subscription, which may have said its own."""
        most = self.most if maxsize is None else maxsize
        policy = when_full or ("merge" if self.when_full == "block" else self.when_full)
        return QueueLimits(most, self.most_bytes, policy)

    def note_merged(self, length: int) -> None:
        """Note how many deltas are left: one for each view at least."""
        self._least = length
        self._looked = self._heavy = 0


def bytes_of(delta: Delta[Any]) -> int:
    """An estimate by the first rows of a delta, and what is in them."""
    pairs = delta._pairs
    some = [row for row, _ in pairs[:SAMPLED]]
    inside = [value for row in some if isinstance(row, tuple) for value in row]
    size = sum(map(sys.getsizeof, some)) + sum(map(sys.getsizeof, inside))
    return OVERHEAD + size * len(pairs) // max(len(some), 1)


@dataclass(slots=True)
class Counts:
    """Counts of writers that waited, or did not, and of merged deltas."""

    late: int = 0
    """Writers that went on before subscribers were told of their commit."""
    blocked: int = 0
    """Writers that waited since too many deltas did."""
    merged: int = 0
    """Deltas that were merged into others since too many waited."""


def merged(waiting: Sequence[Delivery]) -> list[Delivery]:
    """Return deltas of which those for the same subscribers are one."""
    from reactive.engine.dataflow.merge_deltas import Merged

    found: dict[object, tuple[Subscribers, Merged]] = {}
    for place, (subscribers, delta) in enumerate(waiting):
        key = place if _needs_each(subscribers) else (id(subscribers),)
        kept = found.pop(key, None)  # its place is that of its newest
        if kept is None:
            kept = subscribers, Merged(delta)
        else:
            kept[1].add(delta)
        found[key] = kept
    told = [(subscribers, several.delta()) for subscribers, several in found.values()]
    return [(subscribers, delta) for subscribers, delta in told if delta is not None]


def _needs_each(subscribers: Subscribers) -> bool:
    """Return whether one of them keeps each delta, as a history does."""
    found = [reference() for reference in subscribers]
    return any(getattr(each._callback, "needs_each", False) for each in found if each is not None)


def checked_delivery(deliver: object, timeout: object) -> None:
    """Refuse what says nothing about who tells subscribers, or how long that is waited for."""
    if deliver not in (None, "writer", "background"):
        raise PlanError(f"deliver={deliver!r} is nobody\n  give 'writer' or 'background'")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0
    ):
        raise PlanError(f"deliver_timeout={timeout!r} is no time\n  give the seconds to wait")


def knows(node: Node) -> bool:
    """Whether it is: by the node, a view of it, or below."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        if at_hand(current) is not None:
            continue
        if not current.inputs and not _is_whole(current):
            return False
        sources = () if current.contents is not None else current.inputs
        waiting += [source for source in sources if source not in seen]
        seen.update(sources)
    return True


def at_hand(node: Node) -> Iterable[Pair] | None:
    """What a view holds of the output of a node that does not hold it itself."""
    if node.contents is not None and not node.forgets:
        return None
    for reader, _ in node.consumers:
        if (
            isinstance(reader.operator, ViewRows)
            and reader.leaf is not None
            and not reader.deferred
        ):
            return reader.operator.items()
    return None


def _is_whole(source: Node) -> bool:
    """Whether a table has all the rows that it has emitted."""
    if source.contents is None or not source.forgets:
        return True
    try:
        source.contents()
    except TableError:
        return False
    return True


def as_delta(found: Iterable[Any]) -> Sequence[Any]:
    """What a node gives as a delta of its own: a batch is one already."""
    return found if isinstance(found, UniformDelta) else list(found)
