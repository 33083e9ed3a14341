"""Linear recursions: their parts, transitive closures, and recursions that split into partitions.

`closure_of` finds recursions that are the transitive closure of a relation. Only the two ends of
its rows are read.

    reach = edges U select (p.src, e.dst) (join(reach, edges, p.dst == e.src))

    edges:    the rows, each with its begin and its end
    reach:    a row for each pair of nodes with a path from the first to the second

The recursive relation may stand on either side of the join, or on both.

Sound:  rows are equal if and only if both of their ends are; the callables that read the ends and
        make rows cannot raise, and do nothing else.
Needs:  rows of two fields or two items; the recursive rows themselves are extended; one equation as
        only condition; `max_rounds` not lowered, because rounds are not counted.

`partition` finds recursions that consist of many independent small ones.

    reach = edges U select (r.src, e.dst) (join(reach, edges, r.dst == e.src))

        the rows with src == "a" are derived from edges and from rows with src == "a" alone:
        each value of `src` is a partition, whose fixpoint is its own

A closure whose step joins it with itself is rewritten to a closure that grows by one edge per
round, with the same rows.

Sound:  every clause that derives rows from a recursive row forwards the column (`forwards`); the
        best row of a key is the best of rows with the same value.
Needs:  one relation; a column of its rows that is a field or an item.
Source: decomposable recursive plans: O. Wolfson, A. Silberschatz, *Distributed Processing of Logic
        Programs*, 1988; J. Seib, G. Lausen, *Parallelizing Datalog Programs by Generalized
        Pivoting*, 1991.

`linear` splits a linear recursion into clauses over inputs, and clauses over one recursive row.

    same <-  edges  U  select (join(edges, same, edges))

    seeds      edges
    bodies     select (join(side 1, own row, side 1))
    readings   own rows with `src` of a row of side 1, and with `dst` of one

A reading matches recursive rows with rows of an input: by a key of the recursive row alone, and a
key of the input's row.

Sound:  a recursive row derives rows only with input rows of equal key; the body has all other
        conditions.
Needs:  no `keep=`; clauses of where, select and other nodes over one row, and of inner joins with
        inputs of one binding, by a key that reads the recursive row and cannot raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import reduce
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    constant,
    row_names,
    substitute,
    transform,
    tuple_of,
)
from optimizer.expressions.knowledge import (
    Shape,
    Shapes,
    constructor,
    is_canonical,
    makes_record,
    record_field,
    row_is_hashed_by,
    total,
)
from optimizer.expressions.text import over
from optimizer.plans.clauses import Program, clauses, is_closed
from optimizer.plans.join_lists import forwards, origin, ways_of
from optimizer.plans.properties import bindings, free, is_set, may_be_negative, row_shape, shapes
from optimizer.plans.side_conditions import join_match, side_conditions_of
from optimizer.record import record
from optimizer.traverse import with_inputs

ENOUGH_ROUNDS = 10_000
"""The default limit of rounds."""


@record
class Closure:
    """The closure of the rows of a relation by their ends.

    Parameters
    ----------
    ends: row of the source -> where it begins and where it ends.
    kind: the class of the rows of the closure, made of two ends.
    is_row: True if the rows of the source are rows of the closure, unchanged.
    """

    source: plan.Node = field(compare=False)
    ends: Lifted
    kind: type
    is_row: bool


def closure_of(node: plan.Fixpoint, program: Program) -> Closure | None:
    """Return the closure that a fixpoint computes; None if it is not a closure."""
    is_bounded = node.max_rounds is not None and node.max_rounds < ENOUGH_ROUNDS
    if len(program.best) > 1 or program.best[0] is not None or is_bounded:
        return None
    base = [clause.body for clause in program.clauses if is_closed(clause.body)]
    steps = [clause.body for clause in program.clauses if not is_closed(clause.body)]
    found = _closure_over(base[0]) if len(base) == 1 and steps else None
    if found is None or not _has_certain_ends(found):
        return None
    return found if all(_extends(step, found) for step in steps) else None


def _closure_over(base: plan.Node) -> Closure | None:
    """Return the closure of the rows of a base, over the lowest rows that have both ends; None
    without two ends."""
    found = _ends_of(row_shape(base))
    if found is None or bindings(base) != 1:
        return None
    source, ends, names = _strip_selects(base, found[1], 0)
    ends = tuple(_by_name(end, (row_shape(source),)) for end in ends)
    read = Lifted(tuple_of(*ends), names or ("row",), (), 1)
    return Closure(source, read, found[0], is_row=names is None)


def _has_certain_ends(of: Closure) -> bool:
    """Return True if the ends of rows are read without raising, and decide equality of rows."""
    known = shapes(of.source)
    return (
        total(of.ends.body, known)
        and is_canonical(of.ends.body, known)
        and not may_be_negative(of.source)
        and (of.kind is tuple or row_is_hashed_by(of.kind, constructor(of.kind) or ()))
    )


def _ends_of(shape: Shape) -> tuple[type, tuple[Expr, ...]] | None:
    """Return the class of rows with two fields or items, and the expressions that read them; None
    for other rows."""
    if isinstance(shape, tuple):
        return (tuple, _ends_of_parameter(tuple, 0)) if len(shape) == 2 else None
    names = constructor(shape) if isinstance(shape, type) else None
    if shape is None or names is None or len(names) != 2:
        return None
    return shape, _ends_of_parameter(shape, 0)


def _ends_of_parameter(kind: type, place: int) -> tuple[Expr, ...]:
    """Return the two ends of a row of a closure, as reads of the parameter at `place`."""
    row = Parameter(place)
    if kind is tuple:
        return Item(row, constant(0)), Item(row, constant(1))
    return tuple(Attribute(row, name) for name in constructor(kind) or ())


def _strip_selects(
    node: plan.Node, exprs: tuple[Expr, ...], place: int
) -> tuple[plan.Node, tuple[Expr, ...], tuple[str, ...] | None]:
    """Return the node below selects and distincts, `exprs` in terms of its row, and names of its
    row.

    The names are None if there was no select. Weights are ignored; selects that may raise stay. The
    row is the parameter `place`.
    """
    names = None
    while True:
        match node:
            case plan.Distinct(below):
                node = below
            case plan.Select(below, Lifted() as function) if bindings(below) == 1 and total(
                function.body, shapes(below)
            ):
                row: list[Expr] = [Parameter(0), Parameter(1)]
                row[place] = substitute(function.body, (Parameter(place),))
                exprs = tuple(over(expr, tuple(row)) for expr in exprs)
                node, names = below, function.names
            case _:
                return node, exprs, names


def _extends(step: plan.Node, of: Closure) -> bool:
    """Return True if a clause extends a path of the closure by another path or row."""
    join = step.inputs()[0] if isinstance(step, plan.Select) else None
    if not isinstance(step, plan.Select) or not isinstance(step.function, Lifted):
        return False
    made = _constructed_ends(step.function.body, of.kind)
    keys = _only_equation(join) if isinstance(join, plan.Join) else None
    if made is None or keys is None:
        return False
    assert isinstance(join, plan.Join)
    assert isinstance(of.ends.body, Display)
    exprs: tuple[Expr, ...] = (*made, *keys)
    known, ends = list[Shape](), list[tuple[Expr, ...]]()
    for place, side in enumerate(join.inputs()):
        if isinstance(side, plan.Recursive):
            known.append(of.kind)
            ends.append(_ends_of_parameter(of.kind, place))
            continue
        side, exprs, _ = _strip_selects(side, exprs, place)
        if side != of.source:
            return False
        known.append(row_shape(side))
        ends.append(tuple(substitute(end, (Parameter(place),)) for end in of.ends.body.items))
    begins, stops, *met = (_by_name(expr, tuple(known)) for expr in exprs)
    return any(
        (begins, stops) == (ends[one][0], ends[other][1])
        and (met[one], met[other]) == (ends[one][1], ends[other][0])
        for one, other in ((0, 1), (1, 0))
    )


def _constructed_ends(body: Expr, kind: type) -> tuple[Expr, ...] | None:
    """Return the ends of the row of class `kind` that an expression constructs; None if it
    constructs none."""
    match body:
        case Display("tuple", (_, _)) if kind is tuple:
            return body.items
        case Call(Constant(value)) if value is kind and makes_record(body):
            ends = [record_field(body, name) for name in constructor(kind) or ()]
            return tuple(end for end in ends if end is not None)
    return None


def _only_equation(join: plan.Join) -> tuple[Expr, Expr] | None:
    """Return both keys of a join whose only condition is one equation, in terms of its pairs; else
    None."""
    conditions, match = side_conditions_of(join), join_match(join)
    left: Function | None
    right: Function | None
    if conditions is not None and match.left_key is None and conditions.residual is None:
        keys = [*conditions.left, *conditions.right]
        left, right = [k.function for k in keys] if len(keys) == 2 else (None, None)
        is_one = all(key.is_key for key in keys)
    else:
        left, right, is_one = match.left_key, match.right_key, match.on is None
    if not is_one or not isinstance(left, Lifted) or not isinstance(right, Lifted):
        return None
    if left.parameters != 1 or right.parameters != 1:
        return None
    return left.body, substitute(right.body, (Parameter(1),))


def _by_name(expr: Expr, known: Shapes) -> Expr:
    """Read the items of rows that are named tuples as fields."""

    def name_part(part: Expr) -> Expr:
        match part:
            case Item(Parameter(place), Constant(int() as position)):
                kind = known[place]
                names = constructor(kind) if isinstance(kind, type) else None
                if names and issubclass(kind, tuple) and -len(names) <= position < len(names):  # type: ignore[arg-type]
                    return Attribute(Parameter(place), names[position])
        return part

    return transform(expr, name_part)


@record
class PartitionedRecursion:
    """A recursion by partitions.

    Parameters
    ----------
    node: the recursion; perhaps rewritten.
    column: row -> the value that tells partitions apart.
    seeds: nodes that derive rows from inputs alone.
    ways: nodes that derive rows from one recursive row.
    """

    node: plan.Fixpoint
    column: Lifted
    seeds: tuple[plan.Node, ...]
    ways: tuple[plan.Node, ...]

    @property
    def column_name(self) -> str:
        """The column as an expression over the recursive relation's name."""
        match self.column.body:
            case Attribute(_, name):
                return f"{self.node.names[0]}.{name}"
            case Item(_, key):
                return f"{self.node.names[0]}[{getattr(key, 'value', key)}]"
            case _:
                return "row"

    def sides(self) -> tuple[plan.Node, ...]:
        """Return the inputs of the ways other than recursive rows, each once."""
        return tuple(dict.fromkeys(n for way in self.ways for n in _closed_parts(way)))


def partition(node: plan.Node) -> PartitionedRecursion | None:
    """Return a recursion by partitions.

    Return None if `node` is no fixpoint of one relation, reads the relation of an outer recursion,
    has no clause over inputs alone or none over a recursive row, or has no column that tells
    partitions apart.
    """
    if not isinstance(node, plan.Fixpoint) or len(node.names) > 1 or free(node):
        return None
    linear = _linear(node)
    ways = ways_of(linear.bodies[0])
    steps = tuple(way for way in ways if not is_closed(way))
    seeds = tuple(way for way in ways if is_closed(way))
    if not seeds or not steps:
        return None
    known = (row_shape(each) for each in (linear.bodies[0], *ways))
    for column in dict.fromkeys(column for shape in known for column in _columns(shape)):
        is_kept = all(forwards(way, column, may_raise=True) for way in steps)
        if is_kept and _is_within(linear.best[0], column):
            return PartitionedRecursion(linear, Lifted(column, ("row",), (), 1), seeds, steps)
    return None


def _columns(shape: Shape) -> Iterator[Expr]:
    """Iterate over the expressions that read a field or an item of a row; none if unknown."""
    row = Parameter(0)
    if isinstance(shape, tuple):
        yield from (Item(row, constant(place)) for place in range(len(shape)))
        return
    for place, name in enumerate((isinstance(shape, type) and constructor(shape)) or ()):
        yield Attribute(row, name)
        if issubclass(shape, tuple):  # type: ignore[arg-type]
            yield Item(row, constant(place))


def _is_within(best: plan.Best | plan.JoinedValue | None, column: Expr) -> bool:
    """Return True if rows that compete to be the best are of one partition."""
    if best is None:
        return True
    if isinstance(best, plan.JoinedValue):
        return False
    if not isinstance(best.by, Lifted) or not isinstance(best.value, Lifted):
        return False
    by = best.by.body
    return by == column or (isinstance(by, Display) and column in by.items)


def _closed_parts(way: plan.Node) -> Iterator[plan.Node]:
    """Iterate over the inputs of a way: its largest parts that read no recursive row."""
    waiting = [way]
    while waiting:
        node = waiting.pop()
        if is_closed(node):
            yield node
        else:
            waiting.extend(node.inputs())


def _linear(node: plan.Fixpoint) -> plan.Fixpoint:
    """Rewrite a closure to grow by one row of its source per round.

    Return `node` unchanged if it grows so already, or is no closure.
    """
    ways = [way for way in ways_of(node.bodies[0]) if not is_closed(way)]
    if all(_reads_one(way) for way in ways):
        return node
    closure = closure_of(node, clauses(node))
    return node if closure is None else _grown(node, closure)


def _reads_one(way: plan.Node) -> bool:
    return not any(isinstance(n, plan.Join) and _is_of_two(n) for n in _open(way))


def _is_of_two(join: plan.Join) -> bool:
    return not (is_closed(join.left) or is_closed(join.right))


def _open(way: plan.Node) -> Iterator[plan.Node]:
    """Yield the nodes of a way that read the recursive relation, from its top down."""
    waiting = [way]
    while waiting:
        node = waiting.pop()
        if not is_closed(node):
            yield node
            waiting.extend(node.inputs())


def _grown(node: plan.Fixpoint, of: Closure) -> plan.Fixpoint:
    """Return a closure as a recursion that extends each row at its end by one row of the source."""
    assert isinstance(of.ends.body, Display)
    begin, end = (substitute(e, (Parameter(0),)) for e in of.ends.body.items)
    kind: Any = of.kind
    shape = row_shape(node.bodies[0])
    relation = plan.Recursive(node.level, 0, node.names[0], True, (shape,))
    first, last = (_field_of_end(kind, place) for place in (0, 1))
    seed = (
        of.source
        if of.is_row
        else plan.Select(of.source, _callable_over(_construct_row(kind, begin, end), 1))
    )
    match = plan.Match(_callable_over(last, 1), _callable_over(begin, 1))
    joined = plan.Join(relation, of.source, match)
    longer = _construct_row(kind, first, substitute(end, (Parameter(1),)))
    body = plan.Union(seed, plan.Select(joined, _callable_over(longer, 2)))
    return replace(node, bodies=(body,))


def _field_of_end(kind: Any, place: int) -> Expr:
    if kind is tuple:
        return Item(Parameter(0), constant(place))
    return Attribute(Parameter(0), (constructor(kind) or ())[place])


def _construct_row(kind: Any, begin: Expr, end: Expr) -> Expr:
    if kind is tuple:
        return tuple_of(begin, end)
    return Call(constant(kind, kind.__name__), (begin, end))


def _callable_over(body: Expr, parameters: int) -> Lifted:
    return Lifted(body, row_names(parameters), (), parameters)


_ONE_ROW = (plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest)


@record
class MeetingRows:
    """The match of a relation's rows with the rows of a side; its predicate takes them in this
    order."""

    relation: int
    side: int
    match: plan.Match


@record
class Linear:
    """A recursion whose ways read one recursive row each.

    Parameters
    ----------
    seeds: for each relation, the nodes that derive its rows from inputs alone.
    sides: the inputs of ways other than the recursive row.
    own, given: each relation, and the stand-in of each side, as bodies read them.
    bodies: for each relation, its ways over the relations and then the sides, as `Recursive` of the
        recursion's level; None if it has none.
    """

    node: plan.Fixpoint
    seeds: tuple[tuple[plan.Node, ...], ...]
    sides: tuple[plan.Node, ...]
    own: tuple[plan.Recursive, ...]
    given: tuple[plan.Recursive, ...]
    bodies: tuple[plan.Node | None, ...]
    readings: tuple[MeetingRows, ...]


def linear(node: plan.Node) -> Linear | None:
    """Split a linear recursion into seeds, sides and bodies.

    Return None if `node` is no fixpoint, reads the relation of an outer recursion, keeps the best
    rows (`keep=`), has a clause that is not linear, or has a join without a usable key.
    """
    if not isinstance(node, plan.Fixpoint) or free(node) or any(node.best):
        return None
    return _LinearSplitter(node).found()


class _Unfit(Exception):
    """A way is not linear, or its join has no usable key."""


class _LinearSplitter:
    """Splits a recursion into its seeds, its sides and its linear bodies."""

    def __init__(self, node: plan.Fixpoint) -> None:
        self._node = node
        self._sides: dict[plan.Node, int] = {}
        self._readings: dict[MeetingRows, None] = {}

    def found(self) -> Linear | None:
        """Return the parts of the recursion; None if it is not linear or no join has a usable
        key."""
        node = self._node
        ways = [ways_of(body) for body in node.bodies]
        seeds = tuple(tuple(way for way in some if is_closed(way)) for some in ways)
        steps = [[way for way in some if not is_closed(way)] for some in ways]
        try:
            made = [[self._over(way) for way in some] for some in steps]
        except _Unfit:
            return None
        if not self._readings:
            return None
        bodies = tuple(reduce(plan.UnionAll, some) if some else None for some in made)
        own = tuple(
            plan.Recursive(node.level, place, name, True, shapes(body))
            for place, (name, body) in enumerate(zip(node.names, node.bodies, strict=True))
        )
        given = tuple(self._stands_for(side, place) for side, place in self._sides.items())
        sides_ = tuple(self._sides)
        return Linear(node, seeds, sides_, own, given, bodies, tuple(self._readings))

    def _over(self, node: plan.Node) -> plan.Node:
        """Return a way with stand-ins for its sides.

        Raises
        ------
        _Unfit: the way has another node, or a join without a usable side.
        """
        if isinstance(node, plan.Recursive) and node.level == self._node.level:
            return node
        if isinstance(node, _ONE_ROW):
            return with_inputs(node, [self._over(node.input)])
        if not isinstance(node, plan.Join):
            raise _Unfit
        side = next((each for each in node.inputs() if is_closed(each)), None)
        if side is None or bindings(side) > 1:
            raise _Unfit
        place = self._sides.setdefault(side, len(self._sides))
        self._readings[self._reading(node, place)] = None
        given = self._stands_for(side, place)
        return with_inputs(node, [given if s is side else self._over(s) for s in node.inputs()])

    def _stands_for(self, side: plan.Node, place: int) -> plan.Recursive:
        """Return the relation that stands for a side in the bodies, numbered after the recursion's
        own."""
        index = len(self._node.names) + place
        name = f"side {place + 1}"
        return plan.Recursive(self._node.level, index, name, is_set(side), shapes(side))

    def _reading(self, join: plan.Join, place: int) -> MeetingRows:
        """Return the match of a join's recursive side with its other side.

        Raise `_Unfit` if there is no usable key.
        """
        is_left = not is_closed(join.left)
        source = join.left if is_left else join.right
        pairs = [
            pair
            for ours, theirs in zip(*_key_parts_of_sides(join, is_left=is_left), strict=True)
            if (pair := _key_equation(source, ours, theirs)) is not None
        ]
        if not pairs:
            raise _Unfit
        on, relation = conjunction(tuple(pairs)), _relation_read(source)
        of = row_shape(self._node.bodies[relation]), row_shape(self._given_side(place))
        if not total(on, of):
            raise _Unfit
        return MeetingRows(relation, place, plan.Match(on=Lifted(on, row_names(2), (), 2)))

    def _given_side(self, place: int) -> plan.Node:
        return list(self._sides)[place]


def _key_parts_of_sides(join: plan.Join, *, is_left: bool) -> tuple[list[Any], list[Any]]:
    """Return the parts of the keys, of the recursive side and of the other."""
    match, conditions = join_match(join), side_conditions_of(join)
    found = []
    for written, side in ((match.left_key, "left"), (match.right_key, "right")):
        terms = () if conditions is None else getattr(conditions, side)
        parts = [] if written is None else [written]
        found.append([*parts, *(term.function for term in terms if term.is_key)])
    left, right = found
    return (left, right) if is_left else (right, left)


def _key_equation(source: plan.Node, ours: Any, theirs: Any) -> Expr | None:
    """Return the equation of a part of the key of a recursive row and of a side's row.

    Return None if the part is not computed from the recursive row alone.
    """
    if not isinstance(ours, Lifted) or not isinstance(theirs, Lifted):
        return None
    of_own = origin(source, ours.body, may_raise=True)
    if of_own is None:
        return None
    return Operation("==", (of_own, substitute(theirs.body, (Parameter(1),))))


def _relation_read(way: plan.Node) -> int:
    """Return the index of the relation that a way reads."""
    node = way
    while not isinstance(node, plan.Recursive):
        node = next(source for source in node.inputs() if not is_closed(source))
    return node.index
