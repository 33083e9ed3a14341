"""The places in which sub-queries are evaluated: one outside of recursions, one per node inside.

Inside a recursion a sub-query may be of relations that change from round to round. They are held in
a `Room`, beside all that was made of them. Which of it has been read for a row is noted, so that
after a change only what has read of that is made again:

    where any(p.b == e.a for p in reach)    of each e: the rows of reach whose b is e.a
    reach grows by (1, 4)                   each e whose a is 4 is asked again

State: per row, what has been read for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from optimizer import plan
from reactive.engine.reference.bags import Bag, Of, grow
from reactive.engine.reference.candidates import Candidates
from reactive.engine.reference.quantified import Followed

T = TypeVar("T")


class Room:
    """The reads and results of sub-queries in one place of a plan; `held` are the rows of relations
    that a recursion changes.

    Where rows are asked of one by one, it is noted what has been read for each (`notes`), so that
    after a change those are asked again that have read something of it (`touched`).
    """

    def __init__(self) -> None:
        self.held: dict[int, Bag] = {}
        self.notes: set[Any] | None = None
        """Relations, and values of equations, that have been read for a row so far."""
        self._stored: dict[Any, Any] = {}
        self._readers: dict[Any, list[Callable[[], object]]] = {}
        self._followers: dict[int, list[Candidates | Followed]] = {}

    def stored(self, key: object, make: Callable[[], T]) -> T:
        """Return what is stored by a key, made when it is asked for first."""
        try:
            found: T = self._stored[key]
        except KeyError:
            found = self._stored[key] = make()
        return found

    def noted(self, make: Callable[[], T], forget: Callable[[], object]) -> tuple[T, set[Any]]:
        """Return what `make` returns and what it read; `forget` is called when that changes."""
        before, self.notes = self.notes, set()
        notes, readers = self.notes, self._readers
        try:
            return make(), notes
        finally:
            for each in notes:
                readers.setdefault(each, []).append(forget)
            if before is not None:
                before |= notes
            self.notes = before

    def candidates(self, source: plan.Node, make: Callable[[], Candidates]) -> Candidates:
        """Make candidates of the rows of a relation, and have them follow its changes."""
        made = make()
        if id(source) in self.held:
            self._followers.setdefault(id(source), []).append(made)
        return made

    def followed(self, source: plan.Node, symbol: str) -> Followed:
        """Return the rows of a relation by what decides a comparison; they follow its changes."""

        def make() -> Followed:
            made = Followed(source, self.held[id(source)], symbol, lambda: self.notes)
            self._followers.setdefault(id(source), []).append(made)
            return made

        return self.stored(("followed", id(source), symbol), make)

    def touched(self, number: int, change: Bag) -> None:
        """Take in the change of a relation, and have forgotten what has read something of it."""
        grow(self.held[number], change)
        found: list[Any] = [number]
        for each in self._followers.get(number, ()):
            found += each.follow(change)
        for each in found:
            for forget in self._readers.pop(each, ()):
                forget()

    def forget(self) -> None:
        """Forget what was made of relations that have changed."""
        self._stored.clear()
        self._followers.clear()


class Rooms:
    """The room in which sub-queries are evaluated now, and the groups that they are asked of."""

    def __init__(self, closed: Of) -> None:
        self.now = self._outside = Room()
        self.groups: dict[Any, Bag] = {}
        """The rows of the group that is asked for, by the level of its query."""
        self.levels: set[Any] = set()
        self._closed = closed

    def closed(self, node: plan.Node) -> Bag:
        """Return the rows of a plan that reads nothing of a row around."""
        found = self.now.held.get(id(node))
        if found is not None:
            return found
        with self.within(self._outside):
            return self._closed(node)

    @contextmanager
    def within(self, room: Room) -> Iterator[None]:
        """Evaluate sub-queries in a room."""
        before, self.now = self.now, room
        try:
            yield
        finally:
            self.now = before
