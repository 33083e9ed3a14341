"""Sub-queries that are evaluated for values of the row around them, or for a group of rows.

    Asked      the rows of a query for some values, stored by these values
    Query      a query that is evaluated for values, or for a group
    Rooms      what is known where sub-queries are evaluated now

What of a query depends on no value around is evaluated once. Inside a recursion it may be of
relations that change from round to round: they are held in a `Room`, beside all that was made of
them, which is forgotten when they change (`changes.py`).

Cost: per value, the rows that agree in the equations; without one, all rows of the sub-query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from optimizer import plan
from optimizer.expr import Call, Constant, Lifted, conjuncts, constant, walk
from optimizer.plans.properties import fact, nodes, once
from optimizer.traverse import functions
from reactive.reference.bags import Bag, Of
from reactive.reference.candidates import Candidates, equation
from reactive.reference.nodes import inputs_of, linear, rows_of
from reactive.reference.quantified import Ranked

T = TypeVar("T")
NO_VALUE = constant(object(), "no value")
"""In the place of a value of the row around that raises: who reads it raises, and nobody else."""


class Room:
    """What sub-queries read and have made in one place of a plan; `held` are the rows of relations
    that a recursion changes."""

    def __init__(self) -> None:
        self.held: dict[int, Bag] = {}
        self._stored: dict[Any, Any] = {}

    def stored(self, key: object, make: Callable[[], T]) -> T:
        """Return what is stored by a key, made when it is asked for first."""
        try:
            found: T = self._stored[key]
        except KeyError:
            found = self._stored[key] = make()
        return found

    def forget(self) -> None:
        """Forget what was made of relations that have changed."""
        self._stored.clear()


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


class Around:
    """The values of the row around a sub-query, while it is evaluated."""

    def __init__(self) -> None:
        self.now: tuple[Any, ...] = ()
        self._reads: dict[int, Callable[[], Any]] = {}

    def at(self, index: int) -> Callable[[], Any]:
        """Return the function that reads one of the values."""

        def read() -> Any:
            value = self.now[index]
            if value is NO_VALUE.value:
                raise LookupError("a value of the row around raised when it was computed")
            return value

        return self._reads.setdefault(index, read)


class Asked:
    """The rows of a sub-query for some values, stored by these values."""

    def __init__(self, query: Query, around: Around) -> None:
        self.query = query
        self._around = around
        self._is_stored = not reads(query.root) & query.rooms.levels

    def __call__(self, *values: Any) -> Bag:
        if not self._is_stored:
            return self._rows(values)
        known: dict[Any, Bag] = self.query.rooms.now.stored((self, "rows"), dict)
        kinds = tuple(map(type, values))
        try:
            found = known.get((values, kinds))
        except TypeError:
            return self._rows(values)
        if found is None:
            found = known[values, kinds] = self._rows(values)
        return found

    def ranked(self, symbol: str, *values: Any) -> Ranked:
        """Return the rows for some values by what decides a comparison; of a stored bag once."""
        bag = self(*values)
        if not self._is_stored:
            return Ranked(bag, symbol)
        key = self, symbol, id(bag)
        _, found = self.query.rooms.now.stored(key, lambda: (bag, Ranked(bag, symbol)))
        return found

    def _rows(self, values: tuple[Any, ...]) -> Bag:
        before, self._around.now = self._around.now, values
        try:
            return self.query.rows()
        finally:
            self._around.now = before


class Exists:
    """True for values for which a query has a row."""

    def __init__(self, asked: Asked) -> None:
        self.query, self._asked = asked.query, asked

    def __call__(self, *values: Any) -> bool:
        return any(n > 0 for n in self._asked(*values).values())


class Only:
    """The only row that a query has for some values."""

    def __init__(self, asked: Asked) -> None:
        self.query, self._asked = asked.query, asked

    def __call__(self, *values: Any) -> Any:
        (row,) = self._asked(*values)
        return row


class Beside:
    """All rows that a query has for some values, or others if it has none."""

    def __init__(self, asked: Asked, nothing: list[Any]) -> None:
        self.query, self._asked, self._nothing = asked.query, asked, nothing

    def __call__(self, *values: Any) -> list[Any]:
        return list(self._asked(*values).elements()) or self._nothing


class OfGroup:
    """All rows that a query has for a group of rows, which are those of a level in it."""

    def __init__(self, query: Query, level: Any) -> None:
        self.query, self.level = query, level

    def __call__(self, key: Any, rows: Any) -> Iterator[Any]:
        self.query.rooms.groups[self.level] = Counter(dict(rows.items()))
        return self.query.rows().elements()


class Query:
    """A query that is evaluated again for each values, or each group."""

    def __init__(self, root: plan.Node, rooms: Rooms) -> None:
        self.root, self.rooms = root, rooms
        self._open = self._opened()
        self._calls: dict[int, Callable[[Bag], Bag]] = {}

    def rows(self) -> Bag:
        """Return the rows for the values, or the group, of now."""
        known: dict[int, Bag] = {}

        def of(node: plan.Node) -> Bag:
            found = known.get(id(node))
            if found is None:
                found = known[id(node)] = self._of(node, of)
            return found

        return of(self.root)

    def relations(self) -> Iterator[plan.Node]:
        """Return the plans whose rows are asked for and change in a recursion around the query."""
        seen: set[int] = set()
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if id(node) in self._open:
                waiting.extend(inputs_of(node))
                yield from relations_asked(node)
            elif reads(node) - self.rooms.levels:
                yield node

    def _opened(self) -> set[int]:
        """The nodes whose rows depend on the values or the group."""
        found: set[int] = set()
        for node in nodes(self.root):
            is_below = any(id(source) in found for source in node.inputs())
            is_group = isinstance(node, plan.Recursive) and node.level in self.rooms.levels
            if is_below or is_group or self._reads_around(node):
                found.add(id(node))
        return found

    def _reads_around(self, node: plan.Node) -> bool:
        is_outer = any(
            getattr(part.function, "name", None) == "outer"
            for f in functions(node)
            if isinstance(f, Lifted)
            for part in walk(f.body)
            if isinstance(part, Call)
        )
        return is_outer or any(reads(q.root) & self.rooms.levels for q in _queries_of(node))

    def _of(self, node: plan.Node, of: Of) -> Bag:
        if id(node) not in self._open:
            return self.rooms.now.stored((self, id(node)), lambda: self.rooms.closed(node))
        if isinstance(node, plan.Recursive):
            return self.rooms.groups[node.level]
        if isinstance(node, plan.Where):
            found = self.rooms.now.stored((self, "found", id(node)), lambda: self._found(node, of))
            if found is not None:
                return found.rows()
        call = self._calls.get(id(node))
        if call is None:
            made = linear(node) if not isinstance(node, plan.Where) else None
            if made is None:
                return rows_of(node, of)
            call = self._calls[id(node)] = made
        return call(of(*node.inputs()))

    def _found(self, node: plan.Where, of: Of) -> Candidates | None:
        """The filters of rows that depend on nothing around, by the equations in them."""
        tests: list[plan.Where] = []
        source: plan.Node = node
        while isinstance(source, plan.Where) and id(source) in self._open:
            tests.append(source)
            source = source.input
        if id(source) in self._open or isinstance(source, plan.Product):
            return None
        pairs = [
            pair
            for test in tests
            if isinstance(test.predicate, Lifted)
            for pair in map(equation, conjuncts(test.predicate.body))
            if pair is not None
        ]
        return Candidates(source, of(source), tests, pairs) if pairs else None


def relations_asked(node: plan.Node) -> tuple[plan.Node, ...]:
    """Return the plans that the sub-queries of a node read and that change in a recursion."""
    found = {id(each): each for query in _queries_of(node) for each in query.relations()}
    return tuple(found.values())


def rooms_of(node: plan.Node) -> Rooms:
    """Return the rooms of a node that asks sub-queries."""
    return _queries_of(node)[0].rooms


def reads(node: plan.Node) -> frozenset[Any]:
    """Return the levels of the relations that a node reads, or that its sub-queries do."""
    found: frozenset[Any] = fact(node, "read with sub-queries", _reads)
    return found


def _reads(node: plan.Node) -> frozenset[Any]:
    def of(*several: plan.Node) -> frozenset[Any]:
        return frozenset[Any]().union(*map(reads, several))

    match node:
        case plan.Recursive(level):
            return frozenset([level])
        case plan.Fixpoint(level=level):
            return of(*node.inputs()) - {level}
        case plan.Iterate(starts, bodies, level):
            return of(*starts) | (of(*bodies) - {level})
        case _:
            asking = [
                (reads(each.query.root), getattr(each, "level", None)) for each in _asks(node)
            ]
            own = [read - {level} for read, level in asking]
            return of(*node.inputs()).union(*own)


def _queries_of(node: plan.Node) -> list[Query]:
    return [each.query for each in _asks(node)]


def _asks(node: plan.Node) -> list[Any]:
    """The callables in those of a node that ask a sub-query."""
    return once(node, "asks", _find_asks) if node.facts.calls else []


def _find_asks(node: plan.Node) -> list[Any]:
    found: list[Any] = []
    for f in functions(node):
        if isinstance(f, Lifted):
            called = [part.function for part in walk(f.body) if isinstance(part, Call)]
            found += [each.value for each in called if isinstance(each, Constant)]
        else:
            found.append(f.function)
    return [each for each in found if isinstance(getattr(each, "query", None), Query)]
