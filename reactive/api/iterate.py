"""A step applied to relations over and over: `times` rounds, or until a condition or no change.

    x(0) = start        x(r + 1) = step(x(r))        the view is x(times), or the x that stays

A tolerance avoids small changes: a row whose value differs by less than the tolerance from the last
*emitted* row of its key is not emitted. The error is bounded:

    x(r)   the rows without a tolerance     y(r)   the emitted rows, with tolerance t
    e(r)   their distance |y(r) - x(r)|     q      |step(a) - step(b)| <= q |a - b|, a contraction

In each round a row that is not emitted adds less than t to the distance, and the earlier distance
shrinks by q, whatever happened in earlier commits:

    e(0) = 0    e(r + 1) <= |y(r + 1) - step(y(r))| + |step(y(r)) - step(x(r))|  <  d + q e(r)

    e(n) < d (1 + q + ... + q**(n - 1)) = d (1 - q**n) / (1 - q)

Here d is t if |.| is the largest difference of two rows of one key (`norm="max"`), and t times the
number of rows if it is the sum of all differences (`norm="sum"`). A loop until settled stops at a y
with |step(y) - y| < d. Its distance e from the only fixpoint x is below d + q e, so below
d / (1 - q), and so is the distance of a loop from the start: the two are within 2 d / (1 - q).

The bound holds if inserts and deletes of keys depend on the data alone, and not on values.

Groups without an aggregate: each key with the rows that have it, as the nested rows of a nest.

    group_by(k).rows()                  rows (key, rows): the key, and a Bag of the rows
    group_by(k).rows(lambda g: ...)     the key, and the rows of a query on the group

    aggregate Collect(row) by k

The query is called once, with a relation that stands for every group, and is computed for all
groups together, as that of `each` is. A callable that only folds the rows reads the query for one
group, and so becomes an aggregate of it.

Source: grouping as a nested query [fegaras2000].
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from numbers import Real
from operator import attrgetter, itemgetter
from typing import Any, Literal, TypeVar, overload

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.comprehensions.rows import Rows
from optimizer.errors import PlanError
from optimizer.expr import (
    Attribute,
    Call,
    Constant,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Outer,
    Parameter,
    Within,
    all_parameters,
    constant,
    one_value,
    row_names,
    transform,
    tuple_of,
)
from optimizer.expressions.knowledge import Shapes, is_canonical, total
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import Nesting, same
from optimizer.lifting.lift import lift
from optimizer.plans.check_reads import believed_shapes, check_callable
from optimizer.plans.declared_kinds import type_of
from optimizer.plans.join_lists import extend_of
from optimizer.plans.properties import bindings, free, shapes
from optimizer.subqueries.answers import per_group
from optimizer.subqueries.keyed_rows import FIRST, as_expression, items
from optimizer.traverse import rebuilt, substituted, with_functions
from reactive.api import comprehending, literal, nested, nesting
from reactive.api.columns import kind_shown, take_callable
from reactive.api.comprehending import level_of, set_level
from reactive.api.fixpoint import call_step, check_count, parameters
from reactive.api.relation import AnyRelation, Relation, views_of
from reactive.api.stop_condition import step_until
from reactive.engine.collections.inner_changes import nested_class
from reactive.engine.collections.zset import canonical
from reactive.engine.runtime.boundary import outermost

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")
Of = Callable[..., Any]
By = Callable[..., Hashable]
Norm = Literal["max", "sum"]
MANY = 10_000
"""The most rounds of a loop until it settles, by default."""


@overload
def iterate(
    step: Callable[[Relation[T]], Relation[T]],
    start: Relation[T],
    *,
    times: int | None = None,
    until: Literal["settled"] | Callable[..., object] | None = None,
    max_rounds: int | None = None,
    tolerance: float | None = None,
    of: Of | None = None,
    by: By | None = None,
    contraction: float | None = None,
    norm: Norm = "max",
) -> Relation[T]: ...
@overload
def iterate(
    step: Callable[[Relation[T], Relation[U]], tuple[Relation[T], Relation[U]]],
    start: tuple[Relation[T], Relation[U]],
    *,
    times: int | None = None,
    until: Literal["settled"] | Callable[..., object] | None = None,
    max_rounds: int | None = None,
    tolerance: float | Sequence[float | None] | None = None,
    of: Sequence[Of | None] | None = None,
    by: Sequence[By | None] | None = None,
    contraction: float | None = None,
    norm: Norm = "max",
) -> tuple[Relation[T], Relation[U]]: ...
@overload
def iterate(
    step: Callable[
        [Relation[T], Relation[U], Relation[V]], tuple[Relation[T], Relation[U], Relation[V]]
    ],
    start: tuple[Relation[T], Relation[U], Relation[V]],
    *,
    times: int | None = None,
    until: Literal["settled"] | Callable[..., object] | None = None,
    max_rounds: int | None = None,
    tolerance: float | Sequence[float | None] | None = None,
    of: Sequence[Of | None] | None = None,
    by: Sequence[By | None] | None = None,
    contraction: float | None = None,
    norm: Norm = "max",
) -> tuple[Relation[T], Relation[U], Relation[V]]: ...
@overload
def iterate(
    step: Callable[
        [Relation[T], Relation[U], Relation[V], Relation[W]],
        tuple[Relation[T], Relation[U], Relation[V], Relation[W]],
    ],
    start: tuple[Relation[T], Relation[U], Relation[V], Relation[W]],
    *,
    times: int | None = None,
    until: Literal["settled"] | Callable[..., object] | None = None,
    max_rounds: int | None = None,
    tolerance: float | Sequence[float | None] | None = None,
    of: Sequence[Of | None] | None = None,
    by: Sequence[By | None] | None = None,
    contraction: float | None = None,
    norm: Norm = "max",
) -> tuple[Relation[T], Relation[U], Relation[V], Relation[W]]: ...
@outermost
def iterate(
    step: Callable[..., Any],
    start: Any,
    *,
    times: int | None = None,
    until: Literal["settled"] | Callable[..., object] | None = None,
    max_rounds: int | None = None,
    tolerance: Any = None,
    of: Any = None,
    by: Any = None,
    contraction: float | None = None,
    norm: str = "max",
) -> Any:
    """Apply a query step repeatedly, and return the relation after the last round.

    Parameters
    ----------
    step: callable, a relation per parameter -> the relation, or a tuple with one per parameter. Its
        relations may be bags, and it need not be monotone.
    start: the relation of round 0, or a tuple with one per parameter.
    times: the number of rounds, from 0 on.
    until: in place of `times`: "settled", to stop after a round that changes no row; or callable, a
        relation per parameter -> condition, to stop at the first round, from round 0 on, whose rows
        fulfil it, as in `lambda rows: all(row.error < 0.1 for row in rows)`. A loop that no longer
        changes stops, too.
    max_rounds: the most rounds until the loop stops; by default 10,000.
    tolerance, of: a number, and callable, row -> number: a row is emitted to the next round, and at
        the end, if its value differs by `tolerance` or more from that of the last emitted row of
        its key. All other fields of a row must be determined by its key. For several relations `of`
        has an entry for each, None for relations without a tolerance; `tolerance` may, too.
    by: callable, row -> hashable: the key of a row, unique in its relation. By default all fields
        of a row except the one that `of` reads.
    contraction: a number below 1. You promise that a round reduces the distance of any two states
        by this factor. The `norm` of the distance is the largest difference of values ("max"), or
        the sum of the differences ("sum").

    With a contraction the view is within a bound of the query from scratch, which `verify()`
    checks: d / (1 - contraction), or twice that until settled, where d is the tolerance, or for
    "sum" the tolerance times the number of rows. A loop until settled then continues from its last
    result and has the state of one round. Without a contraction `explain()` says that no bound is
    known.

    State: that of `times` copies of the step. Cost: a change touches only the rounds and rows that
    it affects; see docs/recursion.md for loops that do not pay.
    Source: [dbsp] section 7; [mrql] repeat; the bound: Banach's fixed-point theorem.

    Raises
    ------
    PlanError: the step does not return its relations, or options contradict each other.
    FixpointError: later, at a commit: the loop does not settle, or several rows have one key.

    >>> from reactive import Database, iterate
    >>> numbers = Database().table(int, name="numbers")
    >>> view = iterate(lambda n: n.select(lambda x: 2 * x), numbers, times=3).materialize()
    >>> numbers.add_all([1, 5])
    >>> sorted(view)
    [8, 40]

    Until nothing changes, and with a tolerance:

    >>> halves = iterate(lambda n: n.select(lambda x: x // 2), numbers, until="settled")
    >>> list(halves.materialize())
    [0, 0]

    Until a condition holds:

    >>> large = iterate(lambda n: n.select(lambda x: 2 * x), numbers,
    ...     until=lambda n: all(x > 100 for x in n)).materialize()
    >>> sorted(large)
    [128, 640]
    >>> readings = Database().table(tuple[str, float], name="readings")
    >>> cooled = iterate(lambda r: r.select(lambda x: (x[0], x[1] / 2)), readings, times=3,
    ...     tolerance=0.5, of=lambda x: x[1], contraction=0.5).materialize()
    >>> readings.add(("a", 80.0))
    >>> readings.update(("a", 80.0), ("a", 80.9))
    >>> list(cooled)  # exactly it is 10.1125
    [('a', 10.0)]
    >>> cooled.verify()
    """
    names = parameters(step, "iterate")
    starts = _starts(names, start)
    rounds, most = _rounds(times, until, max_rounds)
    if callable(until):
        _check_condition(until, names, contraction)
        step = step_until(step, until)
    level, engine, made = call_step(
        step, names, is_set=False, is_single=len(names) == 1, starts=starts
    )
    node = plan.Iterate(
        tuple([each.plan for each in starts]),
        tuple([each.plan for each in made]),
        level,
        names,
        rounds,
        most,
        _tolerances(names, starts, made, tolerance, of, by),
        contraction,
        norm,  # type: ignore[arg-type]  # it is looked at next
    )
    _check_contraction(node)
    number = level_of(node)
    node = replace(
        node, level=number, bodies=tuple([set_level(b, node, number) for b in node.bodies])
    )
    _check_alone(node)
    views = views_of(*starts, *made)
    if len(names) == 1:
        return Relation(engine, node, views)
    return tuple(Relation(engine, plan.Component(node, i), views) for i in range(len(names)))


def _starts(names: tuple[str, ...], start: Any) -> list[AnyRelation]:
    """Return the relations of round 0; refuses another number of them than parameters."""
    starts = [start] if len(names) == 1 else start
    if not isinstance(starts, tuple | list) or len(starts) != len(names):
        raise PlanError(
            f"the step of iterate takes {len(names)} relations, so it starts from a tuple of as "
            f"many, not {kind_shown(start)}\n"
            f"  one for each of its parameters {', '.join(map(repr, names))}"
        )
    for each in starts:
        if not isinstance(each, Relation):
            raise PlanError(f"iterate starts from a relation, not {type(each).__name__}")
    return list(starts)


def _rounds(times: Any, until: Any, max_rounds: Any) -> tuple[int | None, int]:
    """Return the number of rounds, or None until settled; and the most rounds.

    Refuses both `times` and `until`, neither of them, and `max_rounds` with `times`.
    """
    if (times is None) == (until is None):
        given = "both times= and until=" if until is not None else "neither times= nor until="
        raise PlanError(
            f"iterate has {given}\n"
            '  times=n makes n rounds; until="settled" goes on until no row changes'
        )
    if until is None:
        if max_rounds is not None:
            raise PlanError("max_rounds= belongs to until=: times= says how many rounds there are")
        check_count("times", times)
        return times, 0
    if until != "settled" and not callable(until):
        raise PlanError(f'until={until!r:.60}: it may be "settled" or a condition on the rows')
    most = MANY if max_rounds is None else max_rounds
    check_count("max_rounds", most)
    return None, most


def _check_condition(until: Any, names: tuple[str, ...], contraction: Any) -> None:
    """Refuse a condition of other relations than the step's, or with a contraction."""
    if len(parameters(until, "until of iterate")) != len(names):
        raise PlanError(
            f"the condition until= takes the relations of the step, {', '.join(map(repr, names))}"
        )
    if contraction is not None:
        raise PlanError(
            'contraction= belongs to times= or until="settled": a loop that ends at a condition '
            "has no bound\n  leave contraction= out"
        )


def _tolerances(
    names: tuple[str, ...],
    starts: Sequence[AnyRelation],
    made: Sequence[AnyRelation],
    tolerance: Any,
    of: Any,
    by: Any,
) -> tuple[plan.Tolerance | None, ...]:
    """Return the tolerance of each relation; empty if no argument is given.

    Refuses arguments without one entry per relation, or with no entry but None.
    """
    if tolerance is None and of is None and by is None:
        return ()
    several = len(names) > 1
    given = []
    for word, value in (("tolerance", tolerance), ("of", of), ("by", by)):
        is_for_all = not several or value is None or (word == "tolerance" and _is_real(value))
        entries = [value] * len(names) if is_for_all else value
        if not isinstance(entries, tuple | list) or len(entries) != len(names):
            raise PlanError(
                f"{word}= must have one entry for each of {', '.join(names)}\n"
                "  None for a relation whose rows are all passed on"
            )
        given.append(entries)
    if several and _is_real(tolerance):
        given[0] = [None if value is None else tolerance for value in given[1]]
    every = zip(names, zip(starts, made, strict=True), *given, strict=True)
    found = [
        _tolerance(f" of {name!r}" if several else "", rounds, least, value_of, key)
        for name, rounds, least, value_of, key in every
    ]
    if not any(found):
        raise PlanError("tolerance= and of= have no entry but None: leave them out")
    return tuple(found)


def _tolerance(
    whose: str, rounds: tuple[AnyRelation, AnyRelation], least: Any, of: Any, by: Any
) -> plan.Tolerance | None:
    """Return the tolerance of a relation of an iteration; None if no part of one is given.

    Raises `PlanError` if only some parts are given, or if the number is negative.
    """
    if least is None and of is None and by is None:
        return None
    if least is None or of is None:
        given = "of=" if of is not None else "by=" if least is None else "tolerance="
        missing = "tolerance=" if least is None else "of="
        raise PlanError(
            f"iterate{whose} has {given} but no {missing}\n"
            "  of=lambda row: row.rank says which value may differ by less than tolerance="
        )
    if not _is_real(least) or not isfinite(least) or least < 0:
        raise PlanError(f"tolerance={least!r:.60}{whose}: it is a number that is not negative")
    count = bindings(rounds[0].plan)
    value = take_callable(of, count, "of of iterate")
    key = _others(value, rounds, whose) if by is None else by
    key = take_callable(key, count, "by of iterate")
    for each in rounds:
        for function in (value, key):
            check_callable(function, each.plan)
    return plan.Tolerance(value, key, float(least))


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _others(value: Opaque, rounds: tuple[AnyRelation, AnyRelation], whose: str) -> By:
    """Return the key of a row: all fields that `of` does not read; raises if they are not known."""
    body = lift(value).body
    for each in rounds:
        found = _getter(body, believed_shapes(each.plan))
        if found is not None:
            return found
    raise PlanError(
        f"iterate{whose}: which rows correspond from round to round? of={value} is not known to be "
        "one field of a row\n"
        "  by=lambda row: ... says what tells a row apart, such as its node"
    )


def _getter(body: Any, of: Shapes) -> By | None:
    """Return the function that reads all fields of a row except one; None if they are not known."""
    shape = of[0] if len(of) == 1 else None
    match body:
        case Attribute(Parameter(0), name) if isinstance(shape, type):
            every = getattr(shape, "_fields", None)
            if is_dataclass(shape):
                every = [field.name for field in fields(shape)]
            rest = [each for each in every or () if each != name]
            return attrgetter(*rest) if rest and len(rest) < len(every or ()) else None
        case Item(Parameter(0), Constant(int() as place)) if isinstance(shape, tuple):
            rest = [each for each in range(len(shape)) if each != place % len(shape)]
            return itemgetter(*rest) if rest else None
        case _:
            return None


def _check_contraction(node: plan.Iterate) -> None:
    """Refuse a `norm=` or `contraction=` that is out of range, or that has no tolerance."""
    q = node.contraction
    if node.norm not in ("max", "sum"):
        raise PlanError(f'norm={node.norm!r:.60}: it may be "max" or "sum"')
    if node.norm != "max" and not node.is_tolerant():
        raise PlanError(
            "norm= says how the distance to tolerance= is measured, and there is none\n"
            "  give tolerance= and of=, or leave norm= out"
        )
    if q is None:
        return
    if not node.is_tolerant():
        raise PlanError(
            "contraction= says how far tolerance= may lead, and there is none\n"
            "  without a tolerance the view equals its query"
        )
    if not _is_real(q) or not 0 <= q < 1:
        raise PlanError(
            f"contraction={q!r:.60}: it is a number from 0 to less than 1\n"
            "  a step that does not bring rows closer has no bound; leave it out"
        )


def _check_alone(node: plan.Iterate) -> None:
    """Refuse a loop with a tolerance, or until settled, inside another recursion."""
    if free(node) and (node.times is None or node.is_tolerant()):
        which = 'until="settled"' if node.times is None else "tolerance="
        raise PlanError(
            f"iterate {', '.join(map(repr, node.names))} has {which} and depends on a relation of "
            "another recursion, in which it stands\n"
            "  times= without a tolerance may stand there"
        )


NAMES = ("key", "rows")


def rows_of_groups(relation: Any, key: Function, query: Callable[[Any], Any] | None) -> Any:
    """Return the relation of keys, each with the rows of a query on its group.

    Raises
    ------
    PlanError: `query` is not a callable from a relation to a relation, or cannot be computed for
        all groups together.
    """
    level = object()
    name = "rows" if query is None else literal.parameter_of(query)
    source, key, stands = literal.stand_for_group(relation.plan, key, level, name)
    given = relation._new(stands)
    made = given if query is None else literal.call_for_groups("rows", given, query)
    inside = nesting.inside("rows", made)
    groups = per_group(
        inside.collected,
        level,
        source,
        key,
        of_no_rows=comprehending.of_no_rows,
        canonical=canonical,
    )
    whole = plan.Extend(groups, (), tuple(_pair_columns(inside)), NAMES)
    kind = nested_class(1, NAMES)
    naming = Nesting(kind, NAMES, True, _first, (inside.level,), (type_of(key, source),))
    group = _Group(source, as_expression(key, shapes(source)))
    found = nesting.rows_within(made)
    ways = () if found is None else (_within_group(found, level, group.rows, Parameter(0)),)
    rows = (*ways, _of_one_group(inside, level, group.rows))
    return nested.make_nested(
        relation._new(whole, made), naming, (), (rows,), relation._new(group.keys, made)
    )


def _pair_columns(inside: nesting.InnerRows) -> list[Lifted]:
    """Return the columns of a pair of key and group: the key, and the group as shown."""
    return [
        Lifted(body, row_names(2), (), 2) for body in (Parameter(0), inside.shown(Parameter(1)))
    ]


def _row_bindings(source: plan.Node) -> tuple[Expr, ...]:
    return all_parameters(bindings(source))


def _first(row: Any) -> Any:
    return row[0]


def _within_group(rows: Rows, level: object, group: plan.Node, key: Expr) -> Rows:
    """Replace the relation of a level by the group of a key, in rows and their nested rows."""
    place = len(rows.arguments)

    def with_key(f: Function) -> Function:
        return f.with_body(transform(f.body, key_at)) if isinstance(f, Lifted) else f

    def key_at(expr: Expr) -> Expr:
        return Outer(place) if isinstance(expr, Outer) else expr

    def rewrite_group(expr: Expr) -> Expr:
        if not isinstance(expr, Within):
            return expr
        inner = replace(expr.rows, arguments=expr.arguments)
        made = _within_group(inner, level, group, Outer(place))
        return Within(made, made.arguments)

    mine = rebuilt(group, lambda each: with_functions(each, with_key))
    node = substituted(rows.node, level, lambda _: mine)
    row = tuple([transform(expr, rewrite_group) for expr in rows.row])
    return replace(rows, node=node, row=row, arguments=(*rows.arguments, key))


def _of_one_group(inside: nesting.InnerRows, level: object, group: plan.Node) -> Rows:
    """Return the rows of the query on the group of a key, which is the only outer value."""

    def read_group(node: plan.Node) -> plan.Node:
        return group if isinstance(node, plan.Recursive) and node.level is level else node

    (node,) = inside.collected.inputs()
    node = rebuilt(node, read_group)
    return Rows("list", node, (inside.row,), row_names(bindings(node)), None, (Parameter(0),))


class _Group:
    """The distinct keys of rows, and the rows that have the key around them.

    A key that may raise is computed first.
    """

    def __init__(self, source: plan.Node, by: Lifted) -> None:
        known, key = shapes(source), by.body
        self._never_nan = holds_no_nan(key, known)
        is_a_field = self._never_nan and not isinstance(key, Operation)
        if not (is_a_field or is_canonical(key, known)):
            key = Call(constant(canonical, "canonical"), (key,))
        by, row = by.with_body(key), _row_bindings(source)
        if not total(key, known):
            source = plan.Select(source, by.with_body(tuple_of(key, one_value(row))))
            by = Lifted(FIRST, ("row",), by.origins, 1)
            row = items(Item(Parameter(0), constant(1)), len(row))
        self.keys = plan.Extend(plan.Distinct(plan.Select(source, by)), (0,), (), NAMES[:1])
        found = plan.Where(source, self._has_key(by))
        count = bindings(source)
        columns = [Lifted(each, row_names(count), (), count) for each in row]
        self.rows = extend_of(found, columns)

    def _has_key(self, by: Lifted) -> Lifted:
        """Return the test whether a row has the key around it, also a NaN."""
        key, outer = by.body, Outer(0)
        if self._never_nan:
            return by.with_body(Operation("==", (key, outer)))
        return by.with_body(Operation("==", (same(key), same(outer))))
