"""Frontiers: the values below which a part of the rows of a query changes no more.

    clicks: at, lateness 5      an event before the watermark is late, so that no change has
                                c.at < watermark
    window(tumbling(10))        w.end <= watermark
    select(c.at + 3)            value < watermark + 3
    clicks union views          at < min(watermark of clicks, watermark of views)
    c.at - 2 <= v.at <= c.at    pairs: a view makes pairs with clicks as old as itself, a click with
                                views two older; c.at < min(of clicks, of views),
                                v.at < min(of views, of clicks - 2)

`frontier_of` follows an expression down the plan to the times of streams. Operators drop what
changes of rows above the frontier cannot reach (`closing.py`). `Retention` says it
for a side of a join: a row with which no later row of the other side can match.

Sound:  a frontier holds for insertions and deletions of rows. A row whose value is None or NaN is
        below no frontier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import reduce
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Attempt,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Guard,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    conjuncts,
    constant,
    items_of,
    one_value,
    reads,
    row_names,
    transform,
)
from optimizer.expressions.operand_checks import orders_in, terms_of, without_attempts
from optimizer.expressions.simplification import fold_node
from optimizer.expressions.text import over, project_node
from optimizer.plans.nodes.groups import keeper
from optimizer.plans.properties import (
    bindings,
    nodes,
    once,
    reads_stream,
    row_shape,
    shapes,
    tables,
)
from optimizer.plans.side_conditions import AnyJoin, join_match, side_of
from optimizer.record import record
from optimizer.rewriting import own_values
from optimizer.subqueries.keyed_rows import as_expression
from reactive.engine.collections.time_windows import TimeWindows
from reactive.engine.operators.event_time import DropsClosed, EventClock

SESSION = Item(Parameter(1), constant(1))
"""The window beside a row, in the rows of a reduce that keeps sessions."""


@record
class DelayedWatermark:
    """The watermark of a stream, less a delay; a delay of None is zero."""

    clock: EventClock
    delay: Any = None

    def low(self) -> Any:
        """Return the value now; None while the log of the stream is replayed."""
        return None if self.clock.is_replayed else self.low_at(self.clock.watermark)

    def low_at(self, mark: Any) -> Any:
        """Return the value at a watermark, which is None before the first event."""
        if mark is None or self.delay is None:
            return mark
        low = mark - self.delay
        if low.__class__ is not float:
            return low
        return low - 4 * math.ulp(max(abs(mark), abs(self.delay)))  # the sums were rounded

    def __str__(self) -> str:
        mark = f"the watermark of {self.clock.name}"
        return mark if self.delay is None else f"{mark} - {self.delay}"

    def less(self, delay: Any) -> DelayedWatermark:
        return DelayedWatermark(self.clock, delay if self.delay is None else self.delay + delay)


@record
class Frontier:
    """The least of some marks. Changed rows have values from it on, or beyond it if `is_beyond`.

    The values are windows, of which the ends are compared, if `is_of_windows`.

    >>> clock = EventClock(5)
    >>> clock.move_to(12)
    >>> frontier = Frontier((DelayedWatermark(clock), DelayedWatermark(clock, 2)))
    >>> frontier.low(), frontier.is_closed(4), frontier.is_closed(5), frontier.is_closed(None)
    (5, True, False, False)
    """

    marks: tuple[DelayedWatermark, ...]
    is_beyond: bool = False
    is_of_windows: bool = False

    def __str__(self) -> str:
        marks = " and ".join(map(str, self.marks))
        return f"{'up to' if self.is_beyond else 'before'} {marks}"

    @property
    def clocks(self) -> tuple[EventClock, ...]:
        """The clocks that move it."""
        return tuple(dict.fromkeys(mark.clock for mark in self.marks))

    def low(self) -> Any:
        """Return the least value of later changes; None while there is no such, or logs of events
        are replayed, so that nothing is dropped."""
        if len(self.marks) == 1:
            (mark,) = self.marks
            return mark.low()
        return self._least(mark.low() for mark in self.marks)

    def low_at(self, watermarks: Sequence[Any]) -> Any:
        """Return the least value of later changes at some watermarks, one for each of `clocks`."""
        known = dict(zip(self.clocks, watermarks, strict=True))
        return self._least(mark.low_at(known[mark.clock]) for mark in self.marks)

    def _least(self, lows: Iterable[Any]) -> Any:
        found = [*lows]
        return None if None in found else min(found)

    def value(self, of: Any) -> Any:
        """Return the value to compare."""
        return of[1] if self.is_of_windows and of is not None else of

    def is_closed(self, of: Any) -> bool:
        """Return True if no later change has a value."""
        return self.is_past(self.value(of), self.low())

    def is_past(self, value: Any, low: Any) -> bool:
        """Return True if a value to compare is before `low`, or at it, if later ones are beyond."""
        if low is None or value is None:
            return False
        return bool(value <= low) if self.is_beyond else bool(value < low)

    def at_flush(self) -> Frontier:
        """Return the frontier of changes that come with flushes, and not with commits."""
        marks = tuple(DelayedWatermark(mark.clock.at_flush, mark.delay) for mark in self.marks)
        return Frontier(marks, self.is_beyond, self.is_of_windows)

    def less(self, delay: Any) -> Frontier:
        """Return the frontier of values that are less by `delay`."""
        if delay is None:
            return self
        marks = tuple(mark.less(delay) for mark in self.marks)
        return Frontier(marks, self.is_beyond, self.is_of_windows)


def merge_frontiers(one: Frontier | None, other: Frontier | None) -> Frontier | None:
    """Return the frontier of the changes of two; None if one has none."""
    if one is None or other is None or one.is_of_windows != other.is_of_windows:
        return None
    marks = tuple(dict.fromkeys((*one.marks, *other.marks)))
    return Frontier(marks, one.is_beyond and other.is_beyond, one.is_of_windows)


def follow_clocks(frontier: Frontier, operator: DropsClosed) -> None:
    """Call the operator whenever a clock that moves a frontier has moved."""
    for clock in frontier.clocks:
        clock.follow(operator)


EVENTWISE = (plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest, plan.View)
"""Nodes whose rows are made of one row of their input, or of a view of it."""


def only_comes(node: plan.Node) -> bool:
    """Return True if no row of a node is ever removed: it is made of the events of streams."""
    match node:
        case plan.Table():
            return node.time is not None
        case plan.Lookup(left):
            return only_comes(left)
        case plan.Reduce():
            return hasattr(keeper(node.function), "emits_once")
        case plan.UnionAll(left, right) | plan.Join(left, right):
            return only_comes(left) and only_comes(right)
        case _:
            return isinstance(node, EVENTWISE) and only_comes(*node.inputs())


# The frontier of an expression.


def frontier_of(node: plan.Node, expr: Expr) -> Frontier | None:
    """Return the frontier of an expression over the rows of a node; None if it has none."""
    if not reads_stream(node):
        return None
    found = _moved(expr)
    if found is None:
        return None
    value, delay = found
    below = _frontier(node, value)
    return below if below is None or delay is None else below.less(delay)


def times_of(node: plan.Node) -> Iterator[tuple[Expr, Frontier]]:
    """Yield the parts of rows that have a frontier: times as written, bindings, and their items."""
    for expr in (*_times_of_tables(node), *_parts_of_rows(bindings(node))):
        found = frontier_of(node, expr)
        if found is not None:
            yield expr, found


def _times_of_tables(node: plan.Node) -> list[Expr]:
    return [_body(table.time, table) for table in tables(node) if table.time is not None]


def _parts_of_rows(count: int) -> Iterator[Expr]:
    for place in range(count):
        yield Parameter(place)
        yield from items_of(Parameter(place), ITEMS)


def _moved(expr: Expr) -> tuple[Expr, Any] | None:
    """Return the value of a row that an expression is the sum of with constants, and the constants
    negated; None if there are several."""
    terms = [*terms_of(transform(expr, fold_node), 1)]
    values = [term for term in terms if not _is_known(term[1])]
    if len(values) != 1 or values[0][0] < 0:
        return None
    return values[0][1], _sum_of([(-sign, term) for sign, term in terms if _is_known(term)])


def _is_known(term: Expr) -> bool:
    match term:
        case Constant():
            return True
        case Call(Constant() as called, arguments, keywords) if called.value is timedelta:
            given = (*arguments, *(value for _, value in keywords))
            return all(isinstance(each, Constant) for each in given)
        case _:
            return False


def _sum_of(terms: Sequence[tuple[int, Expr]]) -> Any:
    """Return the sum of constants, None if there are none.

    Raises `TypeError` if they cannot be added.
    """
    values = [_value_of(term) if sign > 0 else -_value_of(term) for sign, term in terms]
    return reduce(lambda a, b: a + b, values) if values else None


def _value_of(term: Expr) -> Any:
    if isinstance(term, Call):
        named = {name: _value_of(value) for name, value in term.keywords if name is not None}
        return timedelta(*map(_value_of, term.arguments), **named)
    assert isinstance(term, Constant)
    return term.value


def _frontier(node: plan.Node, expr: Expr) -> Frontier | None:
    match node:
        case plan.Table():
            is_time = node.time is not None and _body(node.time, node) == expr
            return Frontier((DelayedWatermark(node.clock),)) if is_time else None
        case plan.Where(source) | plan.View(source) | plan.Shared(source) | plan.Distinct(source):
            return frontier_of(source, expr)
        case plan.Negate(source) | plan.OrderBy(source, _, None, _, None):
            return frontier_of(source, expr)
        case plan.Select(source, function):
            return frontier_of(source, over(expr, (_body(function, source),)))
        case plan.Extend(source, keep, columns):
            made = (*map(Parameter, keep), *(_body(column, source) for column in columns))
            return frontier_of(source, over(expr, made))
        case plan.Unnest(source, function):
            if reads(expr) <= set(range(bindings(source))):
                return frontier_of(source, expr)
            return _frontier_of_windows(source, function, expr)
        case plan.UnionAll(left, right) | plan.SetOperation(left, right):
            return merge_frontiers(frontier_of(left, expr), frontier_of(right, expr))
        case plan.Aggregate(source, key, _) if key is not None and reads(expr) == {0}:
            return frontier_of(source, over(expr, (_body(key, source),)))
        case plan.Top(source, key) if expr in _items(_body(key, source)):
            return frontier_of(source, expr)
        case plan.Reduce(source, key, function):
            if reads(expr) == {0}:
                return frontier_of(source, over(expr, (_body(key, source),)))
            own = getattr(keeper(function), "frontier", None)
            if own is None or hasattr(keeper(function), "emits_once"):
                return None if own is None else _frontier_of_closed(source, expr, own)
            return _of_window(expr, SESSION, own, None)
        case plan.Lookup(left, _, count) if reads(expr) <= set(range(count)):
            return frontier_of(left, _beside_key(expr, count))
        case plan.AsofJoin(left, _, count) if reads(expr) <= set(range(count)):
            return _frontier_of_asof(node, _beside_key(expr, count), left)
        case plan.Product() | plan.Join() | plan.SemiJoin() | plan.AntiJoin() | plan.OuterJoin():
            return _frontier_of_join(node, expr)
        case _:
            return None


def _body(function: Function, source: plan.Node) -> Expr:
    return as_expression(function, shapes(source)).body


def _items(key: Expr) -> tuple[Expr, ...]:
    return key.items if isinstance(key, Display) and key.kind == "tuple" else (key,)


def _beside_key(expr: Expr, count: int) -> Expr:
    """Return an expression over bindings as one over rows `(bindings, key, ...)`."""
    row = Item(Parameter(0), constant(0))
    return over(expr, (row,) if count == 1 else items_of(row, count))


def _frontier_of_windows(source: plan.Node, function: Function, expr: Expr) -> Frontier | None:
    """Return the frontier of a window that an `unnest` appends, or of its start or end."""
    match _without_policy(_body(function, source)):
        case Call(Constant() as called, (time,), ()) if isinstance(called.value, TimeWindows):
            below = frontier_of(source, time)
            if below is None or below.is_of_windows:
                return None
            size = called.value.size if called.value.zone is None else None
            return _of_window(expr, Parameter(bindings(source)), below, size)
        case _:
            return None


def _without_policy(several: Expr) -> Expr:
    """Return the call that gives several values, without what drops rows for which it raises."""
    match several:
        case Attempt(Call(Constant() as called, (found,), ())) if called.value in OF_POLICY:
            return found
        case _:
            return several


OF_POLICY = (own_values.elements, own_values.elements_apart)


def _of_window(expr: Expr, window: Expr, below: Frontier, size: Any) -> Frontier | None:
    """Return the frontier of a window, its end or its start, of times that have one."""
    match expr:
        case _ if expr == window:
            return Frontier(below.marks, is_beyond=True, is_of_windows=True)
        case Attribute(of, "end") if of == window:
            return Frontier(below.marks, is_beyond=True)
        case Attribute(of, "start") if of == window and size is not None:
            return Frontier(below.less(size).marks, is_beyond=True)
        case _:
            return None


def _frontier_of_closed(source: plan.Node, expr: Expr, own: Frontier) -> Frontier | None:
    """Return the frontier of the value by which rows are emitted when they are closed."""
    while isinstance(source, plan.UnionAll):
        source = source.left
    assert isinstance(source, plan.Select)
    row, value = _items(_body(source.function, source.input))[:2]
    if over(expr, (Parameter(0), row)) != value:
        return None
    return merge_frontiers(own, frontier_of(source.input, value))


def _frontier_of_asof(node: plan.AsofJoin, expr: Expr, left: plan.Node) -> Frontier | None:
    """Return the frontier of the time of the left: a right row changes those behind it."""
    is_ahead = node.direction != "backward"
    if not isinstance(left, plan.Select) or (is_ahead and node.tolerance is None):
        return None
    time = Item(Parameter(0), constant(2))
    row = (_body(left.function, left.input),)
    if over(expr, row) != over(time, row):
        return None
    right = frontier_of(node.right, time)
    if right is not None and is_ahead:
        right = right.less(node.tolerance)
    return merge_frontiers(frontier_of(left, time), right)


# Joins.


@record
class Reach:
    """A bound that a join sets for its pairs: the value of one side, less `delay`, is at least that
    of the other."""

    is_left: bool
    """True if `high` is a value of the left, and `low` one of the right."""
    high: Expr
    low: Expr
    delay: Any


@record
class Retention:
    """The value of a row of one side, and the frontier below which it has no partner to come."""

    value: Lifted
    frontier: Frontier


Retentions = tuple[Retention | None, Retention | None]
NO_RETENTION: Retentions = (None, None)


def retentions_of(join: AnyJoin) -> Retentions:
    """Return when rows of the left and of the right are dropped, cached; None for a side that
    stays."""
    if not reads_stream(join):
        return NO_RETENTION
    return once(join, "retentions", _find_retentions)


def _find_retentions(join: AnyJoin) -> Retentions:
    found = _retention(join, is_left=True), _retention(join, is_left=False)
    return NO_RETENTION if None in found else found


def drops_rows_of(node: plan.Node) -> bool:
    """Return True if a join that a node reads drops rows."""
    joins = (each for each in nodes(node) if isinstance(each, AnyJoin))
    return reads_stream(node) and any(retentions_of(join) != NO_RETENTION for join in joins)


def _retention(join: AnyJoin, *, is_left: bool) -> Retention | None:
    """Return when rows of a side are dropped.

    A row that may be removed later is dropped when it changes no more itself.
    """
    own, other = join.inputs() if is_left else join.inputs()[::-1]
    for reach in _reaches_of(join):
        if reach.is_left is not is_left:
            continue
        high = _of_side(join, reach.high, is_left=is_left)
        frontier = frontier_of(other, _of_side(join, reach.low, is_left=not is_left))
        found = None if frontier is None else frontier.less(_negated(reach.delay))
        if not only_comes(own):
            found = merge_frontiers(found, frontier_of(own, high))
        if found is not None:
            count = bindings(own) if is_left else 1
            names = _names_of_side(join, count, is_left=is_left)
            body = high if is_left or bindings(own) == 1 else _as_row(high, bindings(own))
            return Retention(Lifted(body, names, (), count), found)
    return None


def _names_of_side(join: AnyJoin, count: int, *, is_left: bool) -> tuple[str, ...]:
    on = join_match(join).on
    names = on.names if isinstance(on, Lifted) else ()
    mine = names[: len(names) - 1] if is_left else names[-1:]
    return mine if len(mine) == count else row_names(count)


def _as_row(expr: Expr, count: int) -> Expr:
    """Return an expression over bindings as one over a row that is a tuple of them."""
    return over(expr, items_of(Parameter(0), count))


def _negated(delay: Any) -> Any:
    return None if delay is None else -delay


def _of_side(join: AnyJoin, expr: Expr, *, is_left: bool) -> Expr:
    """Return an expression over pairs, which reads one side, as one over its bindings."""
    if is_left:
        return expr
    count = bindings(join.inputs()[0])
    right = one_value(all_parameters(bindings(join.inputs()[1])))
    return over(expr, (*all_parameters(count), right))


def _frontier_of_join(join: AnyJoin, expr: Expr) -> Frontier | None:
    """Return the frontier of a value of one side: rows of the other side make pairs with it."""
    count, read = bindings(join.inputs()[0]), reads(expr)
    is_left = count not in read
    if not is_left and read != {count}:
        return None
    own, other = join.inputs() if is_left else join.inputs()[::-1]
    value = _of_side(join, expr, is_left=is_left)
    mine = frontier_of(own, value)
    if mine is None or isinstance(other, plan.Values):
        return mine
    for reach in _reaches_of(join):
        if reach.is_left is is_left and _of_side(join, reach.high, is_left=is_left) == value:
            theirs = frontier_of(other, _of_side(join, reach.low, is_left=not is_left))
            if theirs is not None:
                return merge_frontiers(mine, theirs.less(_negated(reach.delay)))
    return None


def _reaches_of(join: AnyJoin) -> tuple[Reach, ...]:
    """Return what a join says about the distances of values of its sides, cached."""
    return once(join, "reaches", lambda node: tuple(_find_reaches(node)))


def _find_reaches(join: AnyJoin) -> Iterator[Reach]:
    match, count = join_match(join), bindings(join.inputs()[0])
    if match.left_key is not None and match.right_key is not None:
        left = _body(match.left_key, join.inputs()[0])
        right = as_expression(match.right_key, (row_shape(join.inputs()[1]),)).body
        yield from _equal(left, over(right, (Parameter(count),)), count)
    if match.on is None:
        return
    for test in conjuncts(transform(as_expression(match.on).body, fold_node)):
        inner = without_attempts(test.test if isinstance(test, Guard) else test)
        match inner:
            case Operation("==", (a, b)):
                yield from _equal(a, b, count)
            case _:
                for less, greater, _ in orders_in(inner):
                    yield from _reach(less, greater, count)


ITEMS = 4
"""Items of keys that are tuples, of which frontiers are looked for."""


def _item(of: Expr, place: int) -> Expr:
    return project_node(Item(of, constant(place)))


def _equal(a: Expr, b: Expr, count: int) -> Iterator[Reach]:
    """Yield what an equation says, of the first items too, if the sides are tuples."""
    pairs = [(a, b), *((_item(a, place), _item(b, place)) for place in range(ITEMS))]
    for one, other in pairs:
        yield from _reach(one, other, count)
        yield from _reach(other, one, count)


def _reach(less: Expr, greater: Expr, count: int) -> Iterator[Reach]:
    """Yield what `less <= greater` says, if it is about one value of each side and constants."""
    terms = [*terms_of(greater, 1), *terms_of(less, -1)]
    values = [(sign, term) for sign, term in terms if not _is_known(term)]
    if len(values) != 2 or {sign for sign, _ in values} != {1, -1}:
        return
    (high,) = [term for sign, term in values if sign > 0]
    (low,) = [term for sign, term in values if sign < 0]
    sides = side_of(high, count), side_of(low, count)
    if None in sides or sides[0] == sides[1]:
        return
    try:
        delay = _sum_of([(-sign, term) for sign, term in terms if _is_known(term)])
    except TypeError:
        return
    yield Reach(sides[0] == "left", high, low, delay)
