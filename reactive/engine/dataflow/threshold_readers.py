"""Readers of a node that compare a number of its rows with a limit, found by the sorted limits.

    sums by customer --+-- where sum > 100 --+
                       +-- where sum > 250   +--  a row with the sum 200 is sent to the first only
                       +-- where sum > 900 --+

The comparison is the first condition of a reader. A row that fails it is dropped before anything
else is evaluated, so the reader does not need the row.

Sound:  limits are finite or infinite numbers; rows with other values are sent to all readers.
State:  a reference per reader.
Cost:   O(log readers) and the readers found, per row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from optimizer.plans.field_values import Threshold, path_reader
from reactive.engine.collections.zset import UniformDelta
from reactive.engine.dataflow import discrimination
from reactive.engine.dataflow.discrimination import Enqueue, Reader, send, send_found
from reactive.engine.runtime.interrupts import reraise_asynchronous

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node

NUMBERS = frozenset({int, float, bool})


class ThresholdReaders:
    """Readers that compare the same value of a row with limits."""

    __slots__ = ("_above", "_below", "_read", "readers")

    def __init__(self, readers: Sequence[Reader]) -> None:
        self.readers = readers
        self._read = _value_reader(_threshold_of(readers[0]))
        self._above = _in_order([r for r in readers if _threshold_of(r).is_low])
        self._below = _in_order([r for r in readers if not _threshold_of(r).is_low])

    def send(self, delta: Sequence[Any], enqueue: Enqueue) -> None:
        """Send each reader the rows that may pass its limit; all rows if one has no number."""
        is_batch = type(delta) is UniformDelta
        items: Sequence[Any] = delta.rows if type(delta) is UniformDelta else delta
        try:
            values = [self._read(item if is_batch else item[0]) for item in items]
        except Exception as error:  # the readers will raise
            reraise_asynchronous(error)
            send(self.readers, delta, enqueue)
            return
        if not all(type(value) in NUMBERS and value == value for value in values):
            send(self.readers, delta, enqueue)
            return
        found = list(map(self._find, values))
        if len(found) > 2 and 2 * sum(map(len, found)) > len(found) * len(self.readers):
            send(self.readers, delta, enqueue)
            return
        send_found(delta, items, found, enqueue)

    def _find(self, value: Any) -> list[Reader]:
        """Return the readers whose limit a value reaches."""
        (low, above), (high, below) = self._above, self._below
        return [*above[: bisect_right(low, value)], *below[bisect_left(high, value) :]]


def _threshold_of(reader: Reader) -> Threshold:
    """Return the limit of a reader that has one."""
    found = reader[0].constant_tests.threshold
    assert found is not None
    return found


def _in_order(readers: Sequence[Reader]) -> tuple[list[Any], list[Reader]]:
    """Return limits in order, with their readers."""
    found = sorted(readers, key=lambda reader: _threshold_of(reader).limit)
    return [_threshold_of(reader).limit for reader in found], found


def _value_reader(threshold: Threshold) -> Callable[[Any], Any]:
    """Return the function that reads the compared value of a row."""
    place, field = threshold.place, threshold.field
    steps = [step for step in (place, field) if step is not None]
    return path_reader(tuple(steps)) if steps else _itself


def _itself(row: Any) -> Any:
    return row


def find_threshold_readers(node: Node) -> list[ThresholdReaders]:
    """Return the readers of a node by limits, for each value that many compare."""
    if hasattr(node.operator, "settle"):  # its deltas are read later
        return []
    by_value: dict[Any, list[Reader]] = {}
    for reader in node.consumers:
        found = reader[0].constant_tests.threshold
        if found is not None:
            by_value.setdefault((found.place, found.field), []).append(reader)
    many = discrimination.WORTHWHILE
    return [ThresholdReaders(readers) for readers in by_value.values() if len(readers) >= many]
