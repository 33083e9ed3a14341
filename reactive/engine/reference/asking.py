"""Sub-queries evaluated for values of the row around them, or for a group of rows.

    QueryAnswers     the rows of a query for some values, stored by these values
    RepeatedQuery    a query that is evaluated for values, or for a group

A part of a query that depends on no value around is evaluated once; inside a recursion, once until
it changes (`groups.py`).

Cost: per value, the rows that agree in the equations; without one, all rows of the sub-query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

from optimizer import plan
from optimizer.expr import Call, Constant, Function, Lifted, conjuncts, constant, walk
from optimizer.plans.join_lists import callable_of_row
from optimizer.plans.properties import fact, nodes, once
from optimizer.traverse import functions
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections import bag as bags
from reactive.engine.reference import asof
from reactive.engine.reference.bags import (
    Bag,
    Of,
    bag_delta,
    both,
    caller,
    group_members,
    join_rows,
    make_bag,
    make_row_test,
    ordered_rows,
    pair_maker,
    pairing,
    sum_pairs,
    there,
    top_rows,
    with_known_limit,
)
from reactive.engine.reference.bags import once as each_once
from reactive.engine.reference.combined_candidates import combining_step, product_inputs
from reactive.engine.reference.groups import (
    Rooms,
    RowCandidates,
    aggregate_groups,
    equation,
    first_passing,
    grouping,
)
from reactive.engine.reference.quantified import RankedRows, RecursiveRows
from reactive.engine.runtime.progress import SILENT, Progress

T = TypeVar("T")
Step = Callable[[Of, dict[Any, Any]], Bag]
"""Computes the rows of a node from the rows of its inputs and stored parts of the query."""
NO_VALUE = constant(object(), "no value")
"""Stands for a value of the row around that raised: an expression that reads it raises."""


class Around:
    """The values of the row around a sub-query, while it is evaluated."""

    def __init__(self) -> None:
        self.now: tuple[Any, ...] = ()
        self._reads: dict[int, Callable[[], Any]] = {}

    @property
    def read_places(self) -> Collection[int]:
        """The places of the values that a query reads."""
        return self._reads.keys()

    def at(self, index: int) -> Callable[[], Any]:
        """Return the function that reads one of the values."""

        def read() -> Any:
            value = self.now[index]
            if value is NO_VALUE.value:
                raise LookupError("a value of the row around raised when it was computed")
            return value

        return self._reads.setdefault(index, read)


class QueryAnswers:
    """The rows of a sub-query for some values, stored by these values."""

    def __init__(self, query: RepeatedQuery, around: Around) -> None:
        self.query = query
        self._around = around
        self._is_stored = not reads(query.root) & query.rooms.levels
        self._places = tuple(sorted(around.read_places))

    def __call__(self, *values: Any) -> Bag:
        return self._answer("rows", values, self.query.rows)

    def has_row(self, *values: Any) -> bool:
        """Return True if there is a row for some values."""
        return self._answer("has row", values, self.query.has_row)

    def rank_rows(self, symbol: str, *values: Any) -> RankedRows | RecursiveRows:
        """Return the rows for some values, indexed for a comparison."""
        root, room = self.query.root, self.query.rooms.now
        if self._is_stored and not self._places and id(root) in room.held:
            return room.follow_ranked(root, symbol)
        return self._answer(symbol, values, lambda: RankedRows(self.query.rows(), symbol))

    def _answer(self, kind: str, values: tuple[Any, ...], answer: Callable[[], T]) -> T:
        """Return the answer for some values, stored by the values that the query reads.

        Nothing is stored if the query depends on a group.
        """
        if not self._is_stored:
            return self._for(values, answer)
        room = self.query.rooms.now
        known: dict[Any, tuple[T, Any]] = room.store_once((self, kind), dict)
        read = tuple([values[place] for place in self._places])
        key = read, tuple(map(type, read))
        try:
            found = known.get(key)
        except TypeError:
            return self._for(values, answer)
        if found is None and room.notes is None:
            found = known[key] = self._for(values, answer), ()
        elif found is None:
            found = known[key] = room.note_reads(
                lambda: self._for(values, answer), lambda: known.pop(key, None)
            )
        elif room.notes is not None:
            room.notes |= found[1]
        return found[0]

    def _for(self, values: tuple[Any, ...], answer: Callable[[], T]) -> T:
        """Return `answer()`, called while `values` are the values of the row around."""
        before, self._around.now = self._around.now, values
        try:
            return answer()
        finally:
            self._around.now = before


class Exists:
    """True for values that have a row in a query."""

    def __init__(self, asked: QueryAnswers) -> None:
        self.query, self._asked = asked.query, asked

    def __call__(self, *values: Any) -> bool:
        return self._asked.has_row(*values)


class SingleAnswer:
    """The only row that a query has for some values."""

    def __init__(self, asked: QueryAnswers) -> None:
        self.query, self._asked = asked.query, asked

    def __call__(self, *values: Any) -> Any:
        (row,) = self._asked(*values)
        return row


class DefaultedAnswer:
    """The rows that a query has for some values, or default rows if it has none."""

    def __init__(self, asked: QueryAnswers, nothing: list[Any]) -> None:
        self.query, self._asked, self._nothing = asked.query, asked, nothing

    def __call__(self, *values: Any) -> list[Any]:
        return list(self._asked(*values).elements()) or self._nothing


class OfGroup:
    """The rows of a query for a group: inside the query, the relation of `level` is the group."""

    def __init__(self, query: RepeatedQuery, level: Any) -> None:
        self.query, self.level = query, level

    def __call__(self, key: Any, rows: Any) -> Iterator[Any]:
        self.query.rooms.groups[self.level] = Counter(dict(rows.items()))
        return self.query.rows().elements()


class RepeatedQuery:
    """A query that is evaluated again for each tuple of values, or each group.

    `least` returns the relations of a recursion, given the rows of nodes outside of it.
    """

    def __init__(
        self, root: plan.Node, rooms: Rooms, least: Callable[[plan.Fixpoint, Of], list[Bag]]
    ) -> None:
        self.root, self.rooms, self._least = root, rooms, least
        self._open = self._open_nodes()
        self._steps: dict[int, Step] = {}
        self._is_there: Step | None = None

    def rows(self) -> Bag:
        """Return the rows for the current values, or the current group."""
        return self._reading()(self.root)

    def has_row(self) -> bool:
        """Return True if there is a row; if rows are only filtered, stop at the first."""
        if self._is_there is None:
            self._is_there = self._first_of(self.root)
        reading = self._reading()
        return any(n > 0 for n in self._is_there(reading, reading.mine).values())

    def _reading(self) -> _NodeRows:
        return _NodeRows(self, self.rooms.now.store_once(self, dict))

    def relations(self) -> Iterator[plan.Node]:
        """Yield the plans that the query reads and that change in a recursion around it."""
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

    def _open_nodes(self) -> set[int]:
        """Return the nodes whose rows depend on the values or the group."""
        found: set[int] = set()
        for node in nodes(self.root):
            is_below = any(id(source) in found for source in node.inputs())
            is_group = isinstance(node, plan.Recursive) and node.level in self.rooms.levels
            if is_below or is_group or self._reads_around(node):
                found.add(id(node))
        return found

    def _reads_around(self, node: plan.Node) -> bool:
        """Return True if a callable of a node reads the row around, or a recursion in progress."""
        is_outer = any(
            getattr(part.function, "name", None) == "outer"
            for f in functions(node)
            if isinstance(f, Lifted)
            for part in walk(f.body)
            if isinstance(part, Call)
        )
        return is_outer or any(reads(q.root) & self.rooms.levels for q in _queries_of(node))

    def rows_of_node(self, node: plan.Node, of: Of, mine: dict[Any, Any]) -> Bag:
        """Return the rows of a node; `mine` is the storage of the query in the current room."""
        found: Bag | None
        if id(node) not in self._open:
            found = mine.get(id(node))
            if found is None:
                found = mine[id(node)] = self.rooms.rows_outside(node)
            room = self.rooms.now
            if room.notes is not None and id(node) in room.held:
                room.notes.add(id(node))
            return found
        step = self._steps.get(id(node))
        if step is None:
            step = self._steps[id(node)] = self._step(node)
        return step(of, mine)

    def _step(self, node: plan.Node) -> Step:
        """Return the function that computes the rows of a node that depends on outer values."""
        rooms = self.rooms  # a step does not refer to the query, which refers to the step
        if isinstance(node, plan.Recursive):
            level, groups = node.level, rooms.groups
            return lambda of, mine: groups[level]
        if isinstance(node, plan.Fixpoint | plan.Component):
            defining = node.input if isinstance(node, plan.Component) else node
            index = node.index if isinstance(node, plan.Component) else 0
            least = self._least
            if isinstance(defining, plan.Fixpoint):
                return lambda of, mine: least(defining, of)[index]
        if isinstance(node, plan.Where):
            found = self._candidates(node)
            if found is not None:
                return lambda of, mine: found(of, mine).rows(rooms.now.notes)
            combined = self._combined(node)
            if combined is not None:
                return combined
        if pairing(node) is not None:
            return lambda of, mine: evaluate_node(node, of)
        call = linear_map(node)
        if call is not None:
            (source,) = node.inputs()
            return lambda of, mine: call(of(source))
        if isinstance(node, plan.Aggregate):
            group, source = grouping(node), node.input
            return lambda of, mine: group(of(source))
        return lambda of, mine: evaluate_whole(node, of)

    def _first_of(self, node: plan.Node) -> Step:
        """Return the function like `_step`, for a caller that needs only one of the rows."""
        rooms = self.rooms
        if isinstance(node, plan.Select | plan.Extend) and id(node.input) in self._open:
            below, call = self._first_of(node.input), linear_map(node)
            assert call is not None
            return lambda of, mine: call(below(of, mine))
        if not isinstance(node, plan.Where) or id(node) not in self._open:
            return lambda of, mine: of(node)
        found = self._candidates(node)
        if found is not None:
            return lambda of, mine: found(of, mine).first(rooms.now.notes)
        tests, source = self._filters(node)
        if isinstance(source, plan.Product):
            return lambda of, mine: of(node)
        passes = [make_row_test(test.predicate, source) for test in reversed(tests)]
        return lambda of, mine: first_passing(of(source), passes)

    def _filters(self, node: plan.Where) -> tuple[list[plan.Where], plan.Node]:
        """Return the filters above some rows, the last first, and the node of these rows."""
        tests: list[plan.Where] = []
        source: plan.Node = node
        while isinstance(source, plan.Where) and id(source) in self._open:
            tests.append(source)
            source = source.input
        return tests, source

    def _candidates(self, node: plan.Where) -> Callable[[Of, dict[Any, Any]], RowCandidates] | None:
        """Return the function that finds candidate rows by the equations in filters.

        Return None if there is no equation, or the filtered rows depend on the values
        around.
        """
        tests, source = self._filters(node)
        if id(source) in self._open or isinstance(source, plan.Product):
            return None
        pairs = [
            pair
            for test in tests
            if isinstance(test.predicate, Lifted)
            for pair in map(equation, conjuncts(test.predicate.body))
            if pair is not None
        ]
        if not pairs:
            return None
        key, rooms = ("candidates", id(node)), self.rooms

        def found(of: Of, mine: dict[Any, Any]) -> RowCandidates:
            made: RowCandidates | None = mine.get(key)
            if made is None:
                made = mine[key] = rooms.now.candidates(
                    source, lambda: RowCandidates(source, of(source), tests, pairs)
                )
            return made

        return found

    def _combined(self, node: plan.Where) -> Step | None:
        """Return the function that combines the rows of a product that equations find.

        Return None if there is no equation, or rows of an input depend on the values around. In a
        recursion, all rows are combined for each value, since the rows that are read are noted.
        """
        tests, source = self._filters(node)
        inputs = product_inputs(source)
        if any(id(each) in self._open for each in inputs):
            return None
        return combining_step(tests[::-1], inputs, self.rooms, lambda of: evaluate_node(node, of))


class _NodeRows:
    """The rows of nodes for some values, each computed once."""

    __slots__ = ("_known", "_query", "mine")

    def __init__(self, query: RepeatedQuery, mine: dict[Any, Any]) -> None:
        self.mine = mine
        self._query, self._known = query, dict[int, Bag]()

    def __call__(self, node: plan.Node) -> Bag:
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = self._query.rows_of_node(node, self, self.mine)
        return found


def relations_asked(node: plan.Node) -> tuple[plan.Node, ...]:
    """Return the plans that the sub-queries of a node read and that change in a recursion."""
    found = {id(each): each for query in _queries_of(node) for each in query.relations()}
    return tuple(found.values())


def rooms_of(node: plan.Node) -> Rooms:
    """Return the rooms of a node that asks sub-queries."""
    return _queries_of(node)[0].rooms


def reads(node: plan.Node) -> frozenset[Any]:
    """Return the levels of the relations that a node reads, or that its sub-queries do."""
    found: frozenset[Any] = fact(node, "read with sub-queries", _find_read_levels)
    return found


def _find_read_levels(node: plan.Node) -> frozenset[Any]:
    """Return the levels of the recursions that a plan reads, without those it defines."""

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


def _queries_of(node: plan.Node) -> list[RepeatedQuery]:
    return [each.query for each in _asks(node)]


def _asks(node: plan.Node) -> list[Any]:
    """Return the callables of a node that ask a sub-query."""
    return once(node, "asks", _find_asks) if node.facts.calls else []


def _find_asks(node: plan.Node) -> list[Any]:
    return [each for f in functions(node) for each in asks_of(f)]


def asks_of(f: Function) -> list[Any]:
    """Return the callables in a function that ask a sub-query."""
    found: list[Any] = [] if isinstance(f, Lifted) else [f.function]
    if isinstance(f, Lifted):
        called = [part.function for part in walk(f.body) if isinstance(part, Call)]
        found = [each.value for each in called if isinstance(each, Constant)]
    return [each for each in found if isinstance(getattr(each, "query", None), RepeatedQuery)]


# The rows of one node of a plan, given the rows of its inputs: one comprehension each.


def inputs_of(node: plan.Node) -> tuple[plan.Node, ...]:
    """Return the nodes whose rows are read; of a filter over pairs, the paired inputs."""
    found = pairing(node)
    return node.inputs() if found is None else (found.left, found.right)


def evaluate_node(node: plan.Node, of: Of, progress: Progress = SILENT) -> Bag:
    """Return the rows of a node that is neither a table nor a recursion."""
    found = pairing(node)
    if found is not None:
        return join_rows(node, found, of, progress)
    call = linear_map(node)
    return evaluate_whole(node, of) if call is None else call(of(*node.inputs()))


def evaluate_whole(node: plan.Node, of: Of) -> Bag:
    """Return the rows of a node that reads all rows of its inputs together."""
    match node:
        case plan.Empty():
            return Counter()
        case plan.Values(rows):
            return Counter(rows)
        case plan.Distinct(source):
            return each_once(there(of(source)))
        case plan.Union(left, right):
            return each_once(there(both(of(left), of(right))))
        case plan.UnionAll(left, right):
            return both(of(left), of(right))
        case plan.Difference(left, right):
            hidden = of(right)
            return each_once(row for row in there(of(left)) if hidden[row] <= 0)
        case plan.DifferenceAll(left, right):
            return there(of(left)) - there(of(right))
        case plan.Intersection(left, right):
            return each_once(of(left) & of(right))
        case plan.IntersectionAll(left, right):
            return of(left) & of(right)
        case plan.Previous(source, moment):
            now = of(source)
            was: Bag = moment.rows_before(now, bag_delta(now, sum_pairs(moment.pending)))
            return was
        case plan.View() | plan.Tolerate():
            return of(*node.inputs())
        case plan.Aggregate(source):
            return aggregate_groups(node, of(source))
        case plan.Reduce(source):
            return reduce_groups(node, of(source))
        case plan.Top(source):
            return top_rows(node, of(source))
        case plan.AsofJoin(left, right):
            return asof.asof_rows(node, of(left), of(right))
        case plan.OrderBy(source):
            return Counter(ordered_rows(with_known_limit(node, of), of(source)))
    raise TypeError(f"cannot evaluate plan node {type(node).__name__}")


def linear_map(node: plan.Node) -> Callable[[Bag], Bag] | None:
    """Return the function that maps the rows of a linear node; None for other nodes."""
    match node:
        case plan.Where(source, p):
            test = make_row_test(p, source)
            return lambda bag: make_bag({row: n for row, n in bag.items() if test(row)})
        case plan.Negate():
            return lambda bag: make_bag({row: -n for row, n in bag.items()})
        case plan.Select(source, f):
            call = caller(f, source)
            return lambda bag: sum_pairs((call(row), n) for row, n in bag.items())
        case plan.Extend(source):
            call = caller(callable_of_row(node), source)
            return lambda bag: sum_pairs((call(row), n) for row, n in bag.items())
        case plan.SelectMany(source, f):
            call = caller(f, source)
            return lambda bag: sum_pairs((e, n) for row, n in bag.items() for e in call(row))
        case plan.Unnest(source, f):
            call, pair = caller(f, source), pair_maker(source)
            return lambda bag: sum_pairs((pair(r, e), n) for r, n in bag.items() for e in call(r))
        case _:
            return None


# Reduced groups, evaluated from scratch: one call for each.


def reduce_groups(node: plan.Reduce, rows: Bag) -> Bag:
    """Return the rows that a callable makes of each group, after its key."""
    make = callable_of(node.function)
    return sum_pairs(
        ((key, row), 1)
        for key, group in group_members(node.key, node.input, rows).items()
        for row in make(key, bags.Bag(dict(group)))
    )
