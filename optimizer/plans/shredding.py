"""Shred a nest: a flat relation per level, with labels that link rows to the rows around them.

    select Row(c, orders)                              c          label c.id
      left_join c.id == row[0]                  ->     orders     label o.c   below c.id
        customers c
        aggregate Collect(Row(o, lines)) by o.c        lines      label l.o   below o.id
          left_join o.id == row[0]
            orders o
            aggregate Collect(l) by l.o
              lines l

A row has, in place of an inner bag, the label that the left join looks up; no operator stores bags.
An ordered level collects pairs of sort key and row, and stores the rows of a label in order.
The first rows of each label (`Top`) are the rows of the level without their inner bags.

A level that cannot be split like this, for example because it is sorted by an inner bag, is
computed as written: the bag is a value in its row, and the level around it is shredded partially.

Sound:  an inner bag is read only by the row that shows it; the rows around are parts of that row,
        so that different rows show as different ones.
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
"""Least size of a bag that is stored after a read; a smaller bag is built at each reading.

A stored bag makes an insert take 2.4 times as long without readers (45 and 19 us), whatever its
size; a bag that is not stored makes a read after each row take 1.4 times as long for 32 rows, 1.5
for 64, 2.1 for 128, 3.1 for 256 (`asv_benchmarks.nested_sizes`). So at 128 both mistakes cost
alike.
"""


@record
class InnerPlace:
    """A level inside of a row: `place` is its column, `key` its label over the bindings of the
    row."""

    place: int
    key: Lifted
    level: ShreddedLevel


@record
class ShreddedLevel:
    """The rows of a level.

    `rows` computes them. If `is_made`, a row is a tuple built for the level, and ends with its
    label, if it has one; else its parts are its bindings. `kind` is the class of a shown row with
    others inside; a row without is shown as its only part.
    """

    rows: plan.Node
    is_made: bool
    kind: type | None
    inside: tuple[InnerPlace, ...]
    label: Lifted | None
    """The label of a row; None for the rows of the view."""
    order: Lifted | None = None
    """The sort key of a row, for `sequence`; None without an order."""
    sequence: Arranges | None = None

    def key(self, function: Lifted) -> Lifted:
        """Rewrite a callable of bindings to the row."""
        if not self.is_made:
            return function
        parts = [Item(Parameter(0), constant(n)) for n in range(function.parameters)]
        body = transform(function.body, lambda e: parts[e.index] if isinstance(e, Parameter) else e)
        return Lifted(body, ("row",), function.origins, 1)


def shred(node: plan.Node, *, in_order: bool = True) -> ShreddedLevel | None:
    """Return the levels of the rows of a node; None if all inner bags are values.

    Without `in_order`, ordered bags are values.
    """
    if not isinstance(node, plan.Select) or not isinstance(node.function, Lifted):
        return None
    return _shred_level(node.input, node.function.body, None, None, in_order)


def nesting_of(node: plan.Node) -> Nesting | None:
    """Return the naming of a nest's rows; None for other nodes."""
    if not isinstance(node, plan.Select) or not isinstance(node.function, Lifted):
        return None
    row = node.function.body
    if not isinstance(row, Call) or not isinstance(row.function, Constant):
        return None
    named = [origin.function for origin in node.function.origins]
    made = [how for how in named if isinstance(how, Nesting) and how.kind is row.function.value]
    return made[0] if made else None


def _shred_level(
    node: plan.Node, row: Expr, label: Expr | None, order: Expr | None, in_order: bool
) -> ShreddedLevel | None:
    """Return the level of rows that are shown as a call of their class.

    Return None if `row` is no such call that begins with the first bindings, if no level is joined
    below, or if a window cannot move below the joins. `label` and `order` are expressions of the
    row, or None.
    """
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
    label = _drop_needs(label, set(found))
    values = [part for part in row.arguments if _only_shows(part) not in found]
    others = [j for place, j in enumerate(joins, roots) if place not in found]
    is_made = bool(others) or len(values) > roots
    if window is not None:
        above = None if is_made else _window_over(window, base, found.values())
        if above is None:
            return None
        base = above
    rows, width = base, bindings(base)
    numbers = {place: place for place in range(roots)}
    for place, join in enumerate(joins, roots):
        if join in others and place not in found:
            rows = replace(join, left=rows, match=_move_match(join.match, numbers, width))
            numbers[place] = width
            width += 1
    own = [part and _move_parameters(part, numbers) for part in (order, label)]
    if is_made:
        rows, own = _pack_parts(rows, [_move_parameters(part, numbers) for part in values], own)
        width = 1
    inside = []
    for column, part in enumerate(row.arguments):
        at = _only_shows(part)
        if at in found:
            key = joins[at - roots].match.left_key
            assert isinstance(key, Lifted)
            over = Lifted(
                _move_parameters(key.body, numbers), key.names[:roots], key.origins, roots
            )
            level = replace(found[at], sequence=_sequence_of(part))
            inside.append(InnerPlace(column, over, level))
    by, of = [_callable_of_row(part, width) for part in own]
    return ShreddedLevel(rows, is_made, kind, tuple(inside), of, by)


def _pack_parts(
    node: plan.Node, parts: Sequence[Expr], own: Sequence[Expr | None]
) -> tuple[plan.Node, list[Expr | None]]:
    """Return rows that are tuples of their parts and `own`, and expressions that read `own`.

    A missing item of `own` stays None.
    """
    width = bindings(node)
    body = tuple_of(*parts, *[part for part in own if part is not None])
    places = iter(range(len(parts), len(body.items)))
    read = [part and Item(Parameter(0), constant(next(places))) for part in own]
    return plan.Select(node, Lifted(body, row_names(width), (), width)), read


def _without_extend(node: plan.Node) -> tuple[plan.Node, Callable[[Expr], Any]]:
    """Return the node below an extend that only shows inner bags, and a rewrite to its bindings."""
    if not isinstance(node, plan.Extend):
        return node, lambda expr: expr
    columns = [column.body for column in node.columns if isinstance(column, Lifted)]
    if len(columns) < len(node.columns) or any(_only_shows(column) < 0 for column in columns):
        return node, lambda expr: expr
    parts = [*map(Parameter, node.keep), *columns]
    return node.input, lambda expr: transform(
        expr, lambda e: parts[e.index] if isinstance(e, Parameter) else e
    )


def _window_over(
    window: plan.Top, base: plan.Node, levels: Iterable[ShreddedLevel]
) -> plan.Top | None:
    """Return the first rows of each label of rows without their inner bags.

    Return None if the order reads an inner bag, or may: ties are sorted by an inner sequence.
    """
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
) -> dict[int, ShreddedLevel]:
    """Return the levels of bindings that are read only to show them, by their places."""
    sequences = {_only_shows(part) for part in row.arguments if _sequence_of(part) is not None}
    shown = {_only_shows(part) for part in row.arguments} - {-1}
    shown -= set() if in_order else sequences
    keys = [j.match.left_key for j in joins if isinstance(j.match.left_key, Lifted)]
    values = [part for part in row.arguments if _only_shows(part) < 0]
    asked = [label] if label is not None else []
    asked = [_drop_needs(part, shown) or part for part in asked]
    asked += [] if order is None else [order]
    read = {place for part in [*values, *(k.body for k in keys), *asked] for place in reads(part)}
    levels = {
        place: _level_of(join, place in sequences, in_order)
        for place, join in enumerate(joins, roots)
        if place in shown - read
    }
    return {place: level for place, level in levels.items() if level is not None}


def _joins_down_to(node: plan.Node, count: int) -> list[plan.OuterJoin]:
    """Return the left joins down to a row of `count` bindings, the lowest first."""
    joins: list[plan.OuterJoin] = []
    while bindings(node) > count:
        if not isinstance(node, plan.OuterJoin) or node.kind != "left":
            return []
        joins.append(node)
        node = node.left
    return joins[::-1] if bindings(node) == count else []


def _level_of(join: plan.OuterJoin, is_sequence: bool, in_order: bool) -> ShreddedLevel | None:
    """Return the level of a left join with a group of collected rows; None for other joins."""
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
    found = _shred_level(groups.input, value, label, order, in_order)
    return found or _level_of_values(groups.input, value, label, order)


def _in_group(key: Expr, group: Expr) -> Expr | None:
    """Rewrite a key over rows of groups, `(row[0], ...)`, to the rows in them; None if it reads
    more."""
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


def _level_of_values(
    node: plan.Node, value: Expr, label: Expr, order: Expr | None
) -> ShreddedLevel:
    """Return a level whose rows have nothing inside, or values."""
    width, is_made = bindings(node), False
    own: list[Expr | None] = [order, label]
    if value != one_value(all_parameters(width)):
        node, own = _pack_parts(node, [value], own)
        width, is_made = 1, True
    by, of = [_callable_of_row(part, width) for part in own]
    return ShreddedLevel(node, is_made, None, (), of, by)


def _callable_of_row(part: Expr | None, width: int) -> Lifted | None:
    return None if part is None else Lifted(part, row_names(width), (), width)


def _only_shows(part: Expr) -> int:
    """Return the binding whose bag an expression shows; -1 for other expressions.

    The expression is `row[1] if row is not None else Bag()`, or that in an order.
    """
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
    """Return the function that sorts a bag; None if the expression does not call one."""
    if not isinstance(part, Call) or not isinstance(part.function, Constant):
        return None
    found = part.function.value
    return found if isinstance(found, Arranges) and len(part.arguments) == 1 else None


def _drop_needs(label: Expr | None, places: set[int]) -> Expr | None:
    """Return a label without the inner bags that it evaluates first only because they may raise;
    None without one."""
    if not isinstance(label, First):
        return label
    needs = tuple(need for need in label.needs if _only_shows(need) not in places)
    return First(needs, label.then) if needs else label.then


def _move_parameters(expr: Expr, numbers: dict[int, int]) -> Expr:
    return transform(expr, lambda e: Parameter(numbers[e.index]) if isinstance(e, Parameter) else e)


def _move_match(match: plan.Match, numbers: dict[int, int], width: int) -> plan.Match:
    """Return a match whose left key reads `width` bindings, with parameters renumbered."""
    key = match.left_key
    assert isinstance(key, Lifted)
    return replace(
        match,
        left_key=Lifted(_move_parameters(key.body, numbers), row_names(width), key.origins, width),
    )


def levels(top: ShreddedLevel) -> Sequence[ShreddedLevel]:
    """Return a level and all levels inside; outer levels come first."""
    found = [top]
    for level in found:
        found += [inside.level for inside in level.inside]
    return found


def names_of_levels(every: Sequence[ShreddedLevel], nesting: Nesting) -> list[str]:
    """Return the names of the levels, in the order of `levels`; the first are the rows of the
    view."""
    namings: list[Nesting | Level] = [nesting]
    for number, level in enumerate(every):
        roots = 0 if level.kind is None else level.kind.roots  # type: ignore[attr-defined]
        namings += [namings[number].levels[inside.place - roots] for inside in level.inside]
    return [naming.name if isinstance(naming, Level) else "rows" for naming in namings]


def describe_levels(top: ShreddedLevel, nesting: Nesting | Level) -> str:
    """Return the labels of a row, with the keys that look them up, and its values, as text."""
    labels = {inside.place: inside for inside in top.inside}
    roots = nesting.kind.roots if nesting.levels else 0
    parts = []
    for place, level in enumerate(nesting.levels, roots):
        inside = labels.get(place)
        if inside is None:
            parts.append(f"{level.name} by value")
        else:
            more = describe_levels(inside.level, level)
            key = written(inside.key) + ", in order" * (inside.level.sequence is not None)
            parts.append(f"{level.name} by {key}" + (f" ({more})" if more else ""))
    return ", ".join(parts)
