"""Rows of which a value raises when it is compared by `==` with another one of the same hash.

    rows with values whose class has an `__eq__` of its own
      by the hash of each value     those whose `==` raises for one another: refused
    all other rows                  pass

Any operator may look such a value up beside another one: a key, a projection of rows, what an
aggregate counts. So it is asked where rows come in, of all inputs of a query together. A value is
refused that does not compare with a copy of itself, and so are all that clash with another one.

A commit may bring a value and take one that it clashes with: a delta of both would raise, too. Then
the new value is refused until its rows leave, though no row clashes with it any more. Operators and
checks of the same inputs share the memory of such values (`RefusedValues`).

Inputs whose fields are declared to be of classes of Python, or of records of these, are not asked.

Sound:  a value that compares with each other one of its hash is found by every look-up.
State:  of rows with such a value, the row, twice, and each of its values once.
Cost:   a look at the classes of values that are not declared; for a row with a value to compare,
        O(different values of its hash), and two look-ups of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    constant,
    row_names,
    tuple_of,
)
from optimizer.kinds.kind import Anything, Instance, Kind, Members, Struct, inside_of, kind_of
from optimizer.plans.binding_types import binding_types
from optimizer.plans.nodes.reduce import kept_by
from optimizer.plans.properties import bindings, nodes
from optimizer.record import record
from optimizer.rewriting.clashing import REFUSED, Clashing, Entries, RefusedValues
from optimizer.rewriting.own_values import OURS, OWN, HasOwn, compares, module_of, pure, refuse, way

_ASKS_NOTHING = (plan.Where, plan.Extend, plan.Unnest, plan.OrderBy)
"""Nodes that look no value up, but for the kinds of values of an order."""


class Asks(IntEnum):
    """A question to the values of a kind; none if their classes are known not to raise."""

    NOTHING = 0
    UNDECLARED = 1
    """Nothing is declared: values may be of a class with an `__eq__` of its own."""
    OWN = 2
    """The class has an `__eq__` of its own."""


@record
class Input:
    """An input of a query, the values of its rows that may raise, and what is asked of them."""

    rows: plan.Node
    values: tuple[Expr, ...]
    asks: Asks


def inputs_to_ask(root: plan.Node) -> list[Input]:
    """Return the inputs of a query in which such values may be, if it looks any values up."""
    every = nodes(root, until=_is_input)
    if all(_is_input(node) or isinstance(node, _ASKS_NOTHING) for node in every):
        return []
    found = [_asked_of(node) for node in every if _is_input(node)]
    return [each for each in found if each.asks]


def _is_input(node: plan.Node) -> bool:
    return isinstance(node, plan.Table | plan.View)


def _asked_of(node: plan.Node) -> Input:
    if isinstance(node, plan.View):
        tables = [each for each in nodes(node.input) if isinstance(each, plan.Table)]
        if not any(_asked_of(each).asks for each in tables):
            return Input(node, (), Asks.NOTHING)
    values: dict[Expr, Asks] = {}
    for place, of in enumerate(binding_types(node)):
        kind = kind_of(of)
        if isinstance(kind, Struct) and way(kind.python) is not OWN:
            fields = kind.fields.items()
            values |= {Attribute(Parameter(place), name): asks_of(of) for name, of in fields}
        else:
            values[Parameter(place)] = asks_of(kind)
    asked = tuple(value for value, asks in values.items() if asks)
    return Input(node, asked, max(values.values(), default=Asks.NOTHING))


def asks_of(kind: Kind, around: frozenset[Any] = frozenset()) -> Asks:
    """Return what is asked of values of a kind; `around` are the classes that hold it, of which one
    may hold itself."""
    match kind:
        case Anything():
            return Asks.UNDECLARED
        case Struct(python) | Instance(python) | Members(python) if way(python) is OWN:
            return Asks.OWN
        case Struct(python) if python in around:
            return Asks.NOTHING
        case Struct(python):
            around |= {python}
    found = max([asks_of(each, around) for each in inside_of(kind)], default=Asks.NOTHING)
    is_ours = module_of(getattr(kind, "python", None)) in OURS
    return Asks.NOTHING if is_ours and found is Asks.UNDECLARED else found


# The query.


@record
class Parts:
    """An input of a query: its rows without own values, those with own values, and what must not
    raise in these."""

    written: plan.Node
    plain: plan.Node
    own: plan.Node
    needed: tuple[Expr, ...]


def parts_of(source: Input) -> Parts:
    """Return the two parts of an input."""
    asked = Call(pure(HasOwn()), source.values)
    of = _of_row(source.rows, asked)
    return Parts(
        source.rows,
        plan.Where(source.rows, of.with_body(Operation("not", (asked,)))),
        plan.Where(source.rows, of),
        tuple([Call(constant(compares), (value,)) for value in source.values]),
    )


def without_clashes(parts: Sequence[Parts]) -> list[tuple[plan.Node, plan.Node, Lifted]]:
    """Return for each input of a query, in whose `own` rows values compare with copies of
    themselves: the input without rows to refuse, these, and a call that raises for them."""
    if not parts:
        return []
    memory = REFUSED.setdefault(tuple([each.written for each in parts]), RefusedValues())
    entries = [
        plan.SelectMany(each.own, _called(pure(Entries(n)), each.own))
        for n, each in enumerate(parts)
    ]
    every: plan.Node = entries[0]
    for rows in entries[1:]:
        every = plan.UnionAll(every, rows)
    by_hash = Lifted(Item(Parameter(0), constant(0)), ("entry",), (), 1)
    groups = plan.Reduce(every, by_hash, kept_by(Clashing(memory), "clashing"))
    clashing = plan.Select(groups, Lifted(Parameter(1), ("hash", "row"), (), 2))
    made: list[tuple[plan.Node, plan.Node, Lifted]] = []
    for n, each in enumerate(parts):
        count = bindings(each.written)
        whole = Parameter(0) if count == 1 else tuple_of(*map(Parameter, range(count)))
        key = _of_row(each.written, tuple_of(constant(n), whole))
        match = plan.Match(key, Lifted(Parameter(0), ("row",), (), 1))
        kept = plan.UnionAll(each.plain, plan.AntiJoin(each.own, clashing, match))
        refused = plan.SemiJoin(each.own, clashing, match)
        made.append((kept, refused, _called(constant(refuse), each.written)))
    return made


def _called(function: Constant, source: plan.Node, *given: Expr) -> Lifted:
    return _of_row(source, Call(function, (*given, *all_parameters(bindings(source)))))


def _of_row(source: plan.Node, body: Expr) -> Lifted:
    count = bindings(source)
    return Lifted(body, row_names(count), (), count)
