"""Refuse rows with values that clash where operators look them up.

    group by f, distinct select f, union of select f and select g, ...
      rows without a value of the hash of a value with its own `__eq__`     pass
      rows with one, by this hash                                           refused if values clash

`clashing.py` checks the values in rows of tables. A callable may make others, and a value with its
own `__eq__` may have the hash of a value of a Python class: so values are checked where they are
looked up, values of all sides together. Values of declared classes are not checked, nor are values
from tables, which `clashing.py` has checked.

Sound:  two values that are looked up meet by their hash, or not at all.
Needs:  rows outside of a recursion, whose rounds cannot undo the use of a row.
State:  rows with such a hash, twice. All rows by their hash from the first value with its own
        `__eq__` on; before that, none if they are rows of a stored table.
Cost:   a look at the class of each value that is not declared, and its hash.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from optimizer import plan
from optimizer.expr import (
    And,
    Apply,
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Guard,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    Text,
    all_parameters,
    constant,
    parts,
    reads,
    row_names,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import TESTS, Pure, makes_record
from optimizer.expressions.text import one_row
from optimizer.kinds.kind import kind_of
from optimizer.plans.declared_kinds import declared_kind, returned_annotation, type_of
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import bindings, free, nodes
from optimizer.plans.side_conditions import side_of
from optimizer.record import record
from optimizer.rewriting.clashing import (
    Asks,
    Clashing,
    LookUpHash,
    OneEntry,
    RefusedValues,
    asks_of,
)
from optimizer.rewriting.own_values import (
    OURS,
    OWN,
    HasOwn,
    is_plain_class,
    module_of,
    own_values,
    pure,
    refuse,
    way,
)

_PASSING = (
    *(plan.Table, plan.View, plan.Where, plan.Distinct, plan.OrderBy, plan.Top),
    *(plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin, plan.Product),
)
"""Nodes whose rows have only values of tables."""
_COMPARED = frozenset({"==", "!=", "in", "not in"})
_KNOWN_PACKAGES = OURS | sys.stdlib_module_names


@record
class LookUp:
    """Rows, and the value that is looked up for each.

    `new` are the parts of the value that may be of any class; empty for all of it.
    """

    rows: plan.Node
    value: Lifted
    new: tuple[Expr, ...] = ()

    @property
    def asks(self) -> Asks:
        """The check that the values still need."""
        return max([asks(each, self.rows) for each in self.new or (self.value.body,)])


def look_up_rows(node: plan.Node, *new: int) -> LookUp:
    """Return the look-up of whole rows; `new` are the places of bindings that no table has."""
    count = bindings(node)
    value = Lifted(_row_as_value(count), row_names(count), (), count)
    return LookUp(node, value, tuple(map(Parameter, new)))


def may_clash(sides: Sequence[LookUp], given: frozenset[Any]) -> bool:
    """Return True if the `==` of looked-up values may raise, and that can be prevented.

    It cannot be inside of a recursion, except one whose level is `given`.
    """
    return any(each.asks for each in sides) and all(free(each.rows) <= given for each in sides)


# Facts about values.


def asks(value: Expr, rows: plan.Node) -> Asks:
    """Return the check that the values of an expression over rows need."""
    inner = partial(asks, rows=rows)
    match value:
        case Constant() if is_plain_class(value.kind):
            return Asks.NOTHING
        case Constant():
            return Asks.OWN if any(True for _ in own_values(value.value)) else Asks.NOTHING
        case Text() | Formatted() | Guard():
            return Asks.NOTHING
        case Operation(operator) if operator in TESTS:
            return Asks.NOTHING
        case Display("tuple") | Operation() | And() | Or() | Attempt():
            return _most(map(inner, parts(value)))
        case Conditional(_, then, otherwise):
            return max(inner(then), inner(otherwise))
        case First(_, then):
            return inner(then)
        case Call(Constant(called)) if makes_record(value):
            is_own = way(called) is OWN
            return Asks.OWN if is_own else _most(map(inner, parts(value)[1:]))
        case Call() if declared_kind(value, rows) is not None:
            return Asks.NOTHING
        case Call(Constant(called)) if module_of(called) in _KNOWN_PACKAGES:
            return _most(map(inner, parts(value)[1:]))
        case Call(Attribute(of)) if declared_kind(of, rows) is not None:
            return _most(map(inner, parts(value)[1:]))
        case Attribute(of) if declared_kind(of, rows) is not None:
            return Asks.NOTHING
        case Apply(function):
            return asks_of(kind_of(returned_annotation(function)))
        case _:
            return _of_type(value, rows)


def asks_of_pair(value: Expr, left: plan.Node, right: plan.Node) -> Asks:
    """Return the check that the values of an expression over a row and another row need."""
    count = bindings(left)
    if side_of(value, count) == "right":
        return asks(one_row(value, count, bindings(right)), right)
    if side_of(value, count) == "left" or not reads(value):
        return asks(value, left)
    return asks(value, plan.Product(left, right)) if bindings(right) == 1 else Asks.UNDECLARED


def _of_type(value: Expr, rows: plan.Node) -> Asks:
    """Return the check that a value needs by its type; none if inputs have checked it already."""
    count = bindings(rows)
    found = asks_of(kind_of(type_of(Lifted(value, row_names(count), (), count), rows)))
    if found is Asks.OWN and _is_of_row(value):
        given = all(isinstance(node, _PASSING) for node in nodes(rows, until=_is_view_node))
        return Asks.NOTHING if given else found
    return found


def _most(found: Iterable[Asks]) -> Asks:
    return max(found, default=Asks.NOTHING)


def _is_view_node(node: plan.Node) -> bool:
    return isinstance(node, plan.View)


def _is_of_row(value: Expr) -> bool:
    """Return True for a value in a row."""
    match value:
        case Parameter():
            return True
        case Attribute(of) | Item(of, Constant()):
            return _is_of_row(of)
        case _:
            return False


def may_raise_comparing(body: Expr, asked: Callable[[Expr], Asks]) -> bool:
    """Return True if an expression compares values by `==` that may raise."""
    return any(
        isinstance(part, Operation)
        and part.operator in _COMPARED
        and any(map(asked, part.operands))
        for part in walk(body)
    )


# The query.


def split_clashing_look_ups(
    sides: Sequence[LookUp], memory: RefusedValues
) -> list[tuple[plan.Node, plan.Node, Lifted]]:
    """Return for each side the rows to keep, the rows to refuse, and a call that raises for refused
    rows.

    Values of all sides are compared.
    """
    beside = [_append_values(each) if _is_called(each) else each for each in sides]
    found = _without_clashes(beside, memory)
    return [
        given if of is side else (_less(given[0]), _less(given[1]), _refusing(side))
        for given, of, side in zip(found, beside, sides, strict=True)
    ]


def _is_called(of: LookUp) -> bool:
    """Return True if a callable of the user computes the value, which takes longer."""
    return any(isinstance(part, Apply) for part in walk(of.value.body))


def _append_values(of: LookUp) -> LookUp:
    """Append the values to the rows, so that they are computed once."""
    count = bindings(of.rows)
    rows = plan.Extend(of.rows, tuple(range(count)), (of.value,))
    return LookUp(rows, Lifted(Parameter(count), row_names(count + 1), (), count + 1))


def _less(rows: plan.Node) -> plan.Node:
    """Return rows without their last binding."""
    return plan.Extend(rows, tuple(range(bindings(rows) - 1)), ())


def _refusing(of: LookUp) -> Lifted:
    return of.value.with_body(Call(constant(refuse), (of.value.body,)))


def _without_clashes(
    sides: Sequence[LookUp], memory: RefusedValues
) -> list[tuple[plan.Node, plan.Node, Lifted]]:
    """Return for each side the rows that do not clash, the clashing rows, and the call that
    raises."""
    own = [_hash_rows(plan.Where(s.rows, _call(s, HasOwn())), s, memory) for s in sides]
    hashes = _together(own)
    one = Lifted(Parameter(0), ("hash",), (), 1)
    matches = [plan.Match(_call(each, LookUpHash(memory)), one) for each in sides]
    suspects = [plan.SemiJoin(s.rows, hashes, m) for s, m in zip(sides, matches, strict=True)]
    entries = [_entries(*each) for each in zip(range(len(sides)), sides, suspects, strict=True)]
    by_hash = Lifted(Item(Parameter(0), constant(0)), ("entry",), (), 1)
    groups = plan.Reduce(_together(entries), by_hash, kept_by(Clashing(memory), "clashing"))
    clashing = plan.Select(groups, Lifted(Parameter(1), ("hash", "row"), (), 2))
    made: list[tuple[plan.Node, plan.Node, Lifted]] = []
    for n, (each, match, suspect) in enumerate(zip(sides, matches, suspects, strict=True)):
        key = each.value.with_body(tuple_of(constant(n), _row_as_value(bindings(each.rows))))
        by_row = plan.Match(key, Lifted(Parameter(0), ("row",), (), 1))
        alone = plan.AntiJoin(each.rows, hashes, match)
        kept = plan.UnionAll(alone, plan.AntiJoin(suspect, clashing, by_row))
        refused = plan.SemiJoin(suspect, clashing, by_row)
        made.append((kept, refused, _refusing(each)))
    return made


def looked_up(match: plan.Match) -> tuple[Lifted, RefusedValues] | None:
    """Return the value whose hash is the key of a join, and its memory; None for another join."""
    key = match.left_key
    match key.body if isinstance(key, Lifted) else None:
        case Call(Constant(LookUpHash(memory)), (value,)) if isinstance(key, Lifted):
            return key.with_body(value), memory
        case _:
            return None


def _call(of: LookUp, asked: Pure) -> Lifted:
    return of.value.with_body(Call(pure(asked), (of.value.body,)))


def _hash_rows(rows: plan.Node, of: LookUp, memory: RefusedValues) -> plan.Node:
    return plan.Select(rows, _call(of, LookUpHash(memory)))


def _entries(number: int, of: LookUp, rows: plan.Node) -> plan.Node:
    """Return the rows of side `number` as entries under the hash of their looked-up value."""
    given = (constant(number), of.value.body, *all_parameters(bindings(rows)))
    return plan.Select(rows, of.value.with_body(Call(pure(OneEntry()), given)))


def _row_as_value(count: int) -> Expr:
    return Parameter(0) if count == 1 else tuple_of(*all_parameters(count))


def _together(several: Sequence[plan.Node]) -> plan.Node:
    """Return the union of several plans, with all weights added; there must be one at least."""
    every = several[0]
    for each in several[1:]:
        every = plan.UnionAll(every, each)
    return every
