"""A remote in this process: the reference for all others, used by tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate
from reactive.engine.reference.bags import Bag
from reactive.engine.reference.evaluate import evaluate_part, through
from reactive.engine.remote.fragments import LEVEL, Fragment
from reactive.engine.remote.remote import Adopt, Entry, ExternalInput


class InMemory:
    """Keep all rows, by bucket, and evaluate the part over the touched buckets."""

    def __init__(self, part: Fragment) -> None:
        self._part, self._node = part, part.node
        self._prepare = part.prepare
        self._inputs = range(len(part.prepare))
        self._buckets: dict[int, tuple[Bag, ...]] = {}
        self._staged: list[tuple[int, Entry]] = []

    resumed: int | None = None
    begun_anew = ""
    adopt: Adopt | None = None

    def bucket(self, key: Any) -> int:
        return hash(key)

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Any]:
        return hash(key), row

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        self._staged += [(number, entry) for entry in entries]

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        staged = [entry for of, entry in self._staged if of == number]
        self._staged.clear()
        entries = [*staged, *entries, *(entry for source in fed for entry in self._entries(source))]
        touched = {bucket for _, bucket, _, _ in entries}
        before = self._output(touched)
        changed = {b: tuple(Counter(bag) for bag in self._of(b)) for b in touched}
        for place, bucket, row, weight in entries:
            changed[bucket][place][row] += weight
        for bucket, bags in changed.items():
            self._put(bucket, tuple(Counter({r: n for r, n in bag.items() if n}) for bag in bags))
        after = self._output(touched)
        return consolidate([*after.items(), *((row, -n) for row, n in before.items())])

    def contents(self) -> Iterable[Pair]:
        return list(self._output(self._buckets).items())

    def at(self, bucket: int) -> Iterable[Pair]:
        return list(self._output({bucket}).items())

    def footprint(self) -> tuple[int, int]:
        rows = sum(len(bag) for bags in self._buckets.values() for bag in bags)
        return rows, 0

    def describe(self) -> str:
        return "in memory, apart"

    def entries(self) -> Iterable[Entry]:
        return [
            (place, bucket, row, weight)
            for bucket, bags in self._buckets.items()
            for place, bag in enumerate(bags)
            for row, weight in bag.items()
        ]

    def stop(self) -> None:
        self.close()

    def close(self) -> None:
        self._buckets.clear()

    def _entries(self, fed: ExternalInput) -> Iterable[Entry]:
        """Yield the input entries of the rows that are stored in the process."""
        rows: Any = fed.rows
        for row, weight in through(fed.chain, rows.since(fed.after, fed.upto)):
            prepared = self._prepare[fed.place](row)
            if prepared is not None:
                yield (fed.place, *self.pack(fed.place, *prepared), weight)

    def _of(self, bucket: int) -> tuple[Bag, ...]:
        return self._buckets.get(bucket) or tuple(Counter() for _ in self._inputs)

    def _put(self, bucket: int, bags: tuple[Bag, ...]) -> None:
        if any(bags):
            self._buckets[bucket] = bags
        else:
            self._buckets.pop(bucket, None)

    def _output(self, buckets: Iterable[int]) -> Bag:
        given = [Counter[Row]() for _ in self._inputs]
        for bucket in buckets:
            for bag, rows in zip(given, self._of(bucket), strict=True):
                bag.update(rows)
        return evaluate_part(self._node, {(LEVEL, place): bag for place, bag in enumerate(given)})
