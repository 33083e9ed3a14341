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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.zset import Batch
from reactive.engine.runtime.interrupts import reraise_asynchronous

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
            part = Batch(items, delta.weight) if type(delta) is Batch else items
            send(self._readers[place : place + 1], part, enqueue)

    def _chosen(self, delta: Sequence[Any]) -> dict[int, list[Any]]:
        """What each reader gets: rows of a batch, pairs of another delta."""
        is_batch = type(delta) is Batch
        items: Sequence[Any] = delta.rows if type(delta) is Batch else delta
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
