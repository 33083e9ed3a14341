"""Windows: one changed row beside a hand-written program over sorted lists, in one process.

    lag, lead       the neighbours of the old place and of the new one
    top 3           the first rows of the partition, and the row that follows
    frame           the rows from the changed one to the two behind it
    places          numbers that are computed when they are read: the row itself

python -m asv_benchmarks.over [--rows 20000] [--part 100]

Both sides keep what they show, and give a listener the rows that come and go. Target: 3 times.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.measure import SEED
from asv_benchmarks.table import machine, markdown
from asv_benchmarks.turns import beside, times
from reactive import Database, Relation, RowWindow


class Price(NamedTuple):
    id: int
    product: int
    day: int
    amount: int


Key = tuple[int, int]
"""The day and the id of a price, by which its product's are sorted."""
Out = tuple[Any, ...]
Change = tuple[Price, Price]
TOP = 3
FRAME = 2


class Twin:
    """The hand-written program: sorted prices by product, and the answer of each that is shown."""

    def __init__(self, listener: Callable[[list[Out], list[Out]], None]) -> None:
        self.parts: dict[int, list[tuple[Key, Price]]] = {}
        self.shown: dict[int, Out] = {}
        self._listener = listener

    def load(self, rows: Sequence[Price]) -> None:
        for row in rows:
            self.parts.setdefault(row.product, []).append(((row.day, row.id), row))
        for part in self.parts.values():
            part.sort()
            for place, (_, row) in enumerate(part):
                answer = self.answer(part, place)
                if answer is not None:
                    self.shown[row.id] = (row.id, answer)

    def update(self, old: Price, new: Price) -> None:
        """Replace a price by another of its product."""
        gone: list[Out] = []
        came: list[Out] = []
        part = self.parts[old.product]
        entry = ((old.day, old.id), old)
        place = bisect_left(part, entry)
        if part[place : place + 1] != [entry]:
            raise KeyError(old)
        del part[place]
        if (before := self.shown.pop(old.id, None)) is not None:
            gone.append(before)
        entry = ((new.day, new.id), new)
        other = bisect_left(part, entry)
        part.insert(other, entry)
        place += other <= place
        for at in sorted({*self.seeing(place, len(part)), other, *self.seeing(other, len(part))}):
            row = part[at][1]
            answer = self.answer(part, at)
            made = None if answer is None else (row.id, answer)
            known = self.shown.get(row.id)
            if made == known:
                continue
            if known is not None:
                gone.append(known)
                del self.shown[row.id]
            if made is not None:
                came.append(made)
                self.shown[row.id] = made
        self._listener(gone, came)

    def rows(self) -> list[Out]:
        """Return what is shown."""
        return list(self.shown.values())

    def seeing(self, place: int, size: int) -> Iterator[int]:
        """Return the places whose answers a row at `place` may change."""
        raise NotImplementedError

    def answer(self, part: list[tuple[Key, Price]], place: int) -> Any:
        """Return the answer of a row; None for one that is not shown."""
        raise NotImplementedError


class Lag(Twin):
    def seeing(self, place: int, size: int) -> Iterator[int]:
        yield from (at for at in (place, place + 1) if at < size)

    def answer(self, part: list[tuple[Key, Price]], place: int) -> Any:
        return (part[place - 1][1].amount if place else None,)


class Lead(Twin):
    def seeing(self, place: int, size: int) -> Iterator[int]:
        yield from (at for at in (place - 1, place) if 0 <= at < size)

    def answer(self, part: list[tuple[Key, Price]], place: int) -> Any:
        return (part[place + 1][1].amount if place + 1 < len(part) else None,)


class Top(Twin):
    def seeing(self, place: int, size: int) -> Iterator[int]:
        yield from range(place, min(TOP + 1, size))

    def answer(self, part: list[tuple[Key, Price]], place: int) -> Any:
        return (place + 1,) if place < TOP else None


class Frame(Twin):
    def seeing(self, place: int, size: int) -> Iterator[int]:
        yield from range(place, min(place + FRAME + 1, size))

    def answer(self, part: list[tuple[Key, Price]], place: int) -> Any:
        return (sum(row.amount for _, row in part[max(0, place - FRAME) : place + 1]),)


class FrameMax(Frame):
    def answer(self, part: list[tuple[Key, Price]], place: int) -> Any:
        return (max(row.amount for _, row in part[max(0, place - FRAME) : place + 1]),)


class Places(Twin):
    """The rows in order; a change is told by its places, and numbers are those of a list."""

    def update(self, old: Price, new: Price) -> None:
        part = self.parts[old.product]
        entry = ((old.day, old.id), old)
        place = bisect_left(part, entry)
        if part[place : place + 1] != [entry]:
            raise KeyError(old)
        del part[place]
        gone = (place, old.id, (place + 1,))
        entry = ((new.day, new.id), new)
        place = bisect_left(part, entry)
        part.insert(place, entry)
        self._listener([gone], [(place, new.id, (place + 1,))])

    def rows(self) -> list[Out]:
        parts = self.parts.values()
        return [(row.id, (n,)) for part in parts for n, (_, row) in enumerate(part, 1)]

    def answer(self, part: list[tuple[Key, Price]], place: int) -> Any:
        return None


Windowed = Relation[Price, RowWindow]
CASES: dict[str, tuple[Callable[[Windowed], Relation[Any]], type[Twin]]] = {
    "lag": (lambda r: r.select(lambda p, w: (p.id, (w.lag(p.amount),))), Lag),
    "lead": (lambda r: r.select(lambda p, w: (p.id, (w.lead(p.amount),))), Lead),
    "top 3 of each key": (
        lambda r: r.where(lambda p, w: w.row_number() <= TOP).select(
            lambda p, w: (p.id, (w.row_number(),))
        ),
        Top,
    ),
    "sum of 3 rows": (
        lambda r: r.select(lambda p, w: (p.id, (w.sum(p.amount, rows=(-2, 0)),))),
        Frame,
    ),
    "max of 3 rows": (
        lambda r: r.select(lambda p, w: (p.id, (w.max(p.amount, rows=(-2, 0)),))),
        FrameMax,
    ),
    "number of each row": (lambda r: r.select(lambda p, w: (p.id, (w.row_number(),))), Places),
}


class Sides:
    """The engine and the twin over equal rows, and the changes that both get."""

    batch = 1

    def __init__(self, name: str, rows: int, part: int) -> None:
        self.random = Random(SEED)
        query, twin = CASES[name]
        days = part * 4
        self.rows = [
            Price(n, n // part, self.random.randrange(days), self.random.randrange(100))
            for n in range(rows)
        ]
        self.calls = [0, 0]
        self.prices = Database().table(Price, name="prices")
        self.view = query(
            self.prices.over(by=lambda p: p.product, order=[lambda p: p.day, lambda p: p.id])
        ).materialize()
        self.prices.add_all(self.rows)
        hear = self._hear_places if twin is Places else self._hear
        self.subscription = self.view.subscribe(hear)
        self.twin = twin(self._hear_of_twin)
        self.twin.load(self.rows)
        self.days = days

    def changes(self, count: int) -> list[Change]:
        """Return changes of the present rows: another day, or another amount."""
        found = []
        for _ in range(count):
            place = self.random.randrange(len(self.rows))
            old = self.rows[place]
            new = old._replace(amount=self.random.randrange(100))
            if self.random.random() < 0.5:
                new = new._replace(day=self.random.randrange(self.days))
            if new != old:
                self.rows[place] = new
                found.append((old, new))
        return found

    def engine(self, changes: Sequence[Change]) -> None:
        update = self.prices.update
        for old, new in changes:
            update(old, new)

    def by_hand(self, changes: Sequence[Change]) -> None:
        update = self.twin.update
        for old, new in changes:
            update(old, new)

    def check(self) -> None:
        """Raise unless both sides show the same."""
        assert sorted(self.view) == sorted(self.twin.rows())

    def _hear(self, delta: Any) -> None:
        self.calls[0] += 1

    def _hear_places(self, delta: Any) -> None:
        self.calls[0] += len(delta.places) > 0

    def _hear_of_twin(self, gone: list[Out], came: list[Out]) -> None:
        self.calls[1] += 1


def table(rows: int, part: int, turns: int = 15, chunk: int = 200) -> list[str]:
    lines = []
    for name in CASES:
        found = beside(times(Sides(name, rows, part), turns, chunk))
        lines.append([name, f"{found.engine:.1f}", f"{found.twin:.1f}", f"{found.ratio:.1f}"])
    return markdown(["one change of", "engine, us", "by hand, us", "times"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--part", type=int, default=100)
    given = parser.parse_args()
    print("\n".join([machine(), "", *table(given.rows, given.part)]))


if __name__ == "__main__":
    main()
