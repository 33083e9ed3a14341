"""Shred a nest: a flat relation per level, whose labels say which rows show its rows.

    select Row(c, orders)                              c          label c.id
      left_join c.id == row[0]                  ->     orders     label o.c   below c.id
        customers c
        aggregate Collect(Row(o, lines)) by o.c        lines      label l.o   below o.id
          left_join o.id == row[0]
            orders o
            aggregate Collect(l) by l.o
              lines l

What is inside of a row is the label that the left join looks up; no operator holds a bag. A level
in an order collects pairs of what a row stands by, and the row: it keeps the rows of a label so.
The first rows of each label (`Top`) are those of the level without what is inside of them.

A level that cannot be read so, as one that stands by what is inside of it, is computed as it was:
what is inside is a value of its row, and the shredding of what is around it is partial.

Sound:  what is inside is read by nothing but the row that shows it; the rows around are there in
        it as they are, so that different rows show as different ones.
Source: query shredding [cheney2014]; labels, dictionaries and partial shredding [slender].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    constant,
    one_value,
    reads,
    row_names,
    transform,
    tuple_of,
)
from optimizer.expressions.knowledge import Arranges
from optimizer.expressions.text import Level, Nesting, written
from optimizer.plans.properties import bindings
from optimizer.record import record
from optimizer.traverse import with_functions

LARGE = 128
"""Rows of a bag from which on it is kept once it was read: less is a value, made at each reading.

To keep it costs a row that comes 2.4 times as much where nobody reads (45 and 19 us), whatever its
size; not to keep it costs who reads after each row 1.4 times as much of 32 rows, 1.5 of 64, 2.1 of
128, 3.1 of 256 (`asv_benchmarks.nested_sizes`). So 128 is where both ways to be wrong cost alike.
"""


@record
class InnerPlace:
    """What a row has inside: `place` is its column, `key` its label, of the bindings of the row."""

    place: int
    key: Lifted
    level: Shredded


@record
class Shredded:
    """The rows of a level.

    `rows` computes them; if they are made for it (`is_made`), a row is a tuple of its parts, which
    ends with its label where it has one. Else its parts are its bindings. `kind` is the class of
    what is shown of a row with others inside; of one without, its only part is.
    """

    rows: plan.Node
    is_made: bool
    kind: type | None
    inside: tuple[InnerPlace, ...]
    label: Lifted | None
    """Of a row; None of the rows of the view."""
    order: Lifted | None = None
    """What a row stands by, as `sequence` reads it; None of rows in no order."""
    sequence: Arranges | None = None

    def key(self, function: Lifted) -> Lifted:
        """A callable of bindings as one of the row."""
        if not self.is_made:
            return function
        parts = [Item(Parameter(0), constant(n)) for n in range(function.parameters)]
        body = transform(function.body, lambda e: parts[e.index] if isinstance(e, Parameter) else e)
        return Lifted(body, ("row",), function.origins, 1)


def shredded(node: plan.Node, *, in_order: bool = True) -> Shredded | None:
    """The levels of the rows of a node; None if all that is inside of them are values, as what is
    in an order may be."""
    if not isinstance(node, plan.Select) or not isinstance(node.function, Lifted):
        return None
    return _peeled(node.input, node.function.body, None, None, in_order)


def nesting_of(node: plan.Node) -> Nesting | None:
    """What the rows of a node are called, if they are those of a nest."""
    if not isinstance(node, plan.Select) or not isinstance(node.function, Lifted):
        return None
    row = node.function.body
    if not isinstance(row, Call) or not isinstance(row.function, Constant):
        return None
    named = [origin.function for origin in node.function.origins]
    made = [how for how in named if isinstance(how, Nesting) and how.kind is row.function.value]
    return made[0] if made else None


def _peeled(
    node: plan.Node, row: Expr, label: Expr | None, order: Expr | None, in_order: bool
) -> Shredded | None:
    """The level of rows that are shown as a call of their class."""
    if not (isinstance(row, Call) and isinstance(row.function, Constant)):
        return None
    window = node if isinstance(node, plan.Top) else None
    node, inlined = _without_extend(node if window is None else window.input)
    row, label, order = inlined(row), label and inlined(label), order and inlined(order)
    assert isinstance(row, Call) and isinstance(row.function, Constant)
    kind = row.function.value
    roots = getattr(kind, "roots", 0)
    if not isinstance(roots, int) or row.arguments[:roots] != all_parameters(roots):
        return None
    joins = _joins_down_to(node, roots)
    if not joins or joins[0].left is node:
        return None
    base = joins[0].left
    found = _labels(row, joins, roots, label, order, in_order)
    if not found:
        return None
    label = _without(label, set(found))
    values = [part for part in row.arguments if _only_shows(part) not in found]
    others = [j for place, j in enumerate(joins, roots) if place not in found]
    is_made = bool(others) or len(values) > roots
    if window is not None:
        above = None if is_made else _over(window, base, found.values())
        if above is None:
            return None
        base = above
    rows, width = base, bindings(base)
    numbers = {place: place for place in range(roots)}
    for place, join in enumerate(joins, roots):
        if join in others and place not in found:
            rows = replace(join, left=rows, match=_renumbered(join.match, numbers, width))
            numbers[place] = width
            width += 1
    own = [part and _moved(part, numbers) for part in (order, label)]
    if is_made:
        rows, own = _made(rows, [_moved(part, numbers) for part in values], own)
        width = 1
    inside = []
    for column, part in enumerate(row.arguments):
        at = _only_shows(part)
        if at in found:
            key = joins[at - roots].match.left_key
            assert isinstance(key, Lifted)
            over = Lifted(_moved(key.body, numbers), key.names[:roots], key.origins, roots)
            level = replace(found[at], sequence=_sequence_of(part))
            inside.append(InnerPlace(column, over, level))
    by, of = [_of_row(part, width) for part in own]
    return Shredded(rows, is_made, kind, tuple(inside), of, by)


def _made(
    node: plan.Node, parts: Sequence[Expr], own: Sequence[Expr | None]
) -> tuple[plan.Node, list[Expr | None]]:
    """Rows that are tuples of their parts and what else there is of them, and where that is."""
    width = bindings(node)
    body = tuple_of(*parts, *[part for part in own if part is not None])
    places = iter(range(len(parts), len(body.items)))
    read = [part and Item(Parameter(0), constant(next(places))) for part in own]
    return plan.Select(node, Lifted(body, row_names(width), (), width)), read


def _without_extend(node: plan.Node) -> tuple[plan.Node, Callable[[Expr], Any]]:
    """The node below one that only shows what is inside as further bindings, and what an expression
    of these bindings is there."""
    if not isinstance(node, plan.Extend):
        return node, lambda expr: expr
    columns = [column.body for column in node.columns if isinstance(column, Lifted)]
    if len(columns) < len(node.columns) or any(_only_shows(column) < 0 for column in columns):
        return node, lambda expr: expr
    parts = [*map(Parameter, node.keep), *columns]
    return node.input, lambda expr: transform(
        expr, lambda e: parts[e.index] if isinstance(e, Parameter) else e
    )


def _over(window: plan.Top, base: plan.Node, levels: Iterable[Shredded]) -> plan.Top | None:
    """The first rows of each label of rows without what is inside; None if the order reads it, or
    may: rows that tie stand by what is inside, if that is a sequence."""
    width = bindings(base)
    every = (window.key, *(key.function for key in window.keys))
    if any(level.order is not None for level in levels):
        return None
    if not all(isinstance(f, Lifted) and max(reads(f.body), default=0) < width for f in every):
        return None

    def narrow(function: Function) -> Function:
        assert isinstance(function, Lifted)
        return replace(function, names=row_names(width), parameters=width, made=None)

    made = with_functions(window, narrow)
    assert isinstance(made, plan.Top)
    return replace(made, input=base)


def _labels(
    row: Call,
    joins: Sequence[plan.OuterJoin],
    roots: int,
    label: Expr | None,
    order: Expr | None,
    in_order: bool,
) -> dict[int, Shredded]:
    """The levels of bindings that nothing reads but what shows them, by their places."""
    sequences = {_only_shows(part) for part in row.arguments if _sequence_of(part) is not None}
    shown = {_only_shows(part) for part in row.arguments} - {-1}
    shown -= set() if in_order else sequences
    keys = [j.match.left_key for j in joins if isinstance(j.match.left_key, Lifted)]
    values = [part for part in row.arguments if _only_shows(part) < 0]
    asked = [label] if label is not None else []
    asked = [_without(part, shown) or part for part in asked]
    asked += [] if order is None else [order]
    read = {place for part in [*values, *(k.body for k in keys), *asked] for place in reads(part)}
    levels = {
        place: _level_of(join, place in sequences, in_order)
        for place, join in enumerate(joins, roots)
        if place in shown - read
    }
    return {place: level for place, level in levels.items() if level is not None}


def _joins_down_to(node: plan.Node, count: int) -> list[plan.OuterJoin]:
    """The left joins of a row of some bindings, the first one first."""
    joins: list[plan.OuterJoin] = []
    while bindings(node) > count:
        if not isinstance(node, plan.OuterJoin) or node.kind != "left":
            return []
        joins.append(node)
        node = node.left
    return joins[::-1] if bindings(node) == count else []


def _level_of(join: plan.OuterJoin, is_sequence: bool, in_order: bool) -> Shredded | None:
    """The level of what a left join finds, if it is a group of collected rows."""
    match, groups = join.match, join.right
    if match.on is not None or not isinstance(match.left_key, Lifted):
        return None
    if not isinstance(match.right_key, Lifted) or not isinstance(groups, plan.Aggregate):
        return None
    if groups.row is not None or not isinstance(groups.key, Lifted) or len(groups.aggregates) != 1:
        return None
    (collect,) = groups.aggregates
    is_plain = collect.name == "Collect" and not collect.skip_none and not collect.functions
    if not is_plain or not isinstance(collect.value, Lifted):
        return None
    label, value, order = _in_group(match.right_key.body, groups.key.body), collect.value.body, None
    if is_sequence:
        if not isinstance(value, Display) or value.kind != "tuple" or len(value.items) != 2:
            return None
        order, value = value.items
    if label is None:
        return None
    found = _peeled(groups.input, value, label, order, in_order)
    return found or _whole(groups.input, value, label, order)


def _in_group(key: Expr, group: Expr) -> Expr | None:
    """A key of the rows of groups, `(row[0], ...)`, as one of the rows in them."""
    of_group = Item(Parameter(0), constant(0))
    needs: tuple[Expr, ...] = ()
    if isinstance(group, First):
        needs, group = group.needs, group.then
    mark = Parameter(1)
    marked = transform(key, lambda e: mark if e == of_group else e)
    if reads(marked) != {1}:
        return None
    found = transform(marked, lambda e: group if e == mark else e)
    return First(needs, found) if needs else found


def _whole(node: plan.Node, value: Expr, label: Expr, order: Expr | None) -> Shredded:
    """A level whose rows have nothing inside, or values."""
    width, is_made = bindings(node), False
    own: list[Expr | None] = [order, label]
    if value != one_value(all_parameters(width)):
        node, own = _made(node, [value], own)
        width, is_made = 1, True
    by, of = [_of_row(part, width) for part in own]
    return Shredded(node, is_made, None, (), of, by)


def _of_row(part: Expr | None, width: int) -> Lifted | None:
    return None if part is None else Lifted(part, row_names(width), (), width)


def _only_shows(part: Expr) -> int:
    """The binding that an expression is the bag of, `row[1] if row is not None else Bag()`, or that
    in an order; -1 if it is anything else."""
    if _sequence_of(part) is not None and isinstance(part, Call):
        (part,) = part.arguments
    if not isinstance(part, Conditional) or not isinstance(part.test, Operation):
        return -1
    (row, *rest), then, otherwise = part.test.operands, part.then, part.otherwise
    is_asked = part.test.operator == "is not" and rest == [constant(None)]
    is_shown = isinstance(row, Parameter) and then == Item(row, constant(1))
    is_empty = isinstance(otherwise, Constant) and not otherwise.value and is_asked and is_shown
    return row.index if is_empty and isinstance(row, Parameter) else -1


def _sequence_of(part: Expr) -> Arranges | None:
    """What puts a bag in an order."""
    if not isinstance(part, Call) or not isinstance(part.function, Constant):
        return None
    found = part.function.value
    return found if isinstance(found, Arranges) and len(part.arguments) == 1 else None


def _without(label: Expr | None, places: set[int]) -> Expr | None:
    """A label without what it would evaluate before for no more than what that may raise."""
    if not isinstance(label, First):
        return label
    needs = tuple(need for need in label.needs if _only_shows(need) not in places)
    return First(needs, label.then) if needs else label.then


def _moved(expr: Expr, numbers: dict[int, int]) -> Expr:
    return transform(expr, lambda e: Parameter(numbers[e.index]) if isinstance(e, Parameter) else e)


def _renumbered(match: plan.Match, numbers: dict[int, int], width: int) -> plan.Match:
    key = match.left_key
    assert isinstance(key, Lifted)
    return replace(
        match, left_key=Lifted(_moved(key.body, numbers), row_names(width), key.origins, width)
    )


def levels(top: Shredded) -> Sequence[Shredded]:
    """It and the levels inside, what is around sooner than what is inside."""
    found = [top]
    for level in found:
        found += [inside.level for inside in level.inside]
    return found


def names_of(every: Sequence[Shredded], nesting: Nesting) -> list[str]:
    """What the levels are called, in the order of `levels`; the first are the rows of the view."""
    namings: list[Nesting | Level] = [nesting]
    for number, level in enumerate(every):
        roots = 0 if level.kind is None else level.kind.roots  # type: ignore[attr-defined]
        namings += [namings[number].levels[inside.place - roots] for inside in level.inside]
    return [naming.name if isinstance(naming, Level) else "rows" for naming in namings]


def described(top: Shredded, nesting: Nesting | Level) -> str:
    """What is a label in it, with the key by which it is looked up, and what is a value."""
    labels = {inside.place: inside for inside in top.inside}
    roots = nesting.kind.roots if nesting.levels else 0
    parts = []
    for place, level in enumerate(nesting.levels, roots):
        inside = labels.get(place)
        if inside is None:
            parts.append(f"{level.name} by value")
        else:
            more = described(inside.level, level)
            key = written(inside.key) + ", in order" * (inside.level.sequence is not None)
            parts.append(f"{level.name} by {key}" + (f" ({more})" if more else ""))
    return ", ".join(parts)
