"""Properties of a plan's rows that hold for all contents of the tables.

`binding_names` returns the names of bindings that `extend` and `bind` gave.

    extend total=f          None, None, "total"       over two bindings
      join ...

A join has the names of its left, and the name of a right with one binding.

Names are for people: equal plans may have different names.

`name_columns` emits the rows of an aggregate as records with a field per column.

    aggregate(orders=Count(), total=Sum("total"))

    select Row(town, orders, total)
      aggregate Count(), Sum(order.total) by order.town

The columns are named by a select above the aggregate, so that aggregates with different column
names are equal, and rules can replace fields of the record by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import caller
from optimizer.expr import Call, Constant, Lifted, all_parameters, constant
from optimizer.expressions import attempts
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.expressions.text import Naming, Nesting, naming_of
from optimizer.plans.facts import as_row

T = TypeVar("T")


def bindings(node: plan.Node) -> int:
    """Return the number of values in a row; with more than one, the row is a tuple of them."""
    return len(shapes(node))


def shapes(node: plan.Node) -> Shapes:
    """Return the shape of each binding of the rows."""
    found: Shapes | None = node.known.get("shapes")
    return fact(node, "shapes", _shapes) if found is None else found


def row_shape(node: plan.Node) -> Shape:
    """Return the shape of a row as one value."""
    return as_row(shapes(node))


def is_set(node: plan.Node) -> bool:
    """Return True if no row occurs twice."""
    return bool(fact(node, "is_set", _compute_is_set))


def free(node: plan.Node) -> frozenset[Any]:
    """Return the levels of the recursive relations that a node reads outside their definition."""
    found: frozenset[Any] = fact(node, "free", _free)
    return found


def _free(node: plan.Node) -> frozenset[Any]:
    """Return the levels of recursive relations that a node reads outside their definition."""
    read: frozenset[Any] = frozenset().union(*map(free, node.inputs()))
    match node:
        case plan.Recursive(level):
            return frozenset([level])
        case plan.Fixpoint(level=level):
            return read - {level}
        case plan.Iterate(starts, bodies, level):
            outside = frozenset[Any]().union(*map(free, starts))
            return outside | (frozenset[Any]().union(*map(free, bodies)) - {level})
        case _:
            return read


def fact(node: plan.Node, name: str, compute: Callable[[plan.Node], Any]) -> Any:
    """Return a fact of a node that depends on the same fact of its inputs.

    It is computed once per node, and once per form if it is one of `SHARED`.
    """
    if name in node.known:
        return node.known[name]
    is_shared = name in SHARED
    if is_shared and _is_known_of_form(node, name):
        return node.known[name]
    waiting = [node]
    while waiting:
        current = waiting[-1]
        start = len(waiting)
        for source in current.inputs():
            if name not in source.known and not (is_shared and _is_known_of_form(source, name)):
                waiting.append(source)
        if len(waiting) == start:
            waiting.pop()
            if name not in current.known:
                found = current.known[name] = compute(current)
                form = current.known.get("form")
                if is_shared and form is not None and form.is_general:
                    form.known[name] = found
    return node.known[name]


SHARED = frozenset({"shapes", "believed", "is_set", "keeps_identity", "free", "may_be_negative"})
"""Facts that all nodes of a form have in common (`forms.py`)."""


def _is_known_of_form(node: plan.Node, name: str) -> bool:
    """Copy a fact from the form of a node; return False if the form does not have it."""
    form = node.known.get("form")
    if form is None or name not in form.known:
        return False
    node.known[name] = form.known[name]
    return True


def once(node: plan.Node, name: str, compute: Callable[[Any], T]) -> T:
    """Return a fact of a node by itself; computed once per node."""
    if name not in node.known:
        node.known[name] = compute(node)
    found: T = node.known[name]
    return found


def _shapes(node: plan.Node) -> Shapes:
    return node.facts.shapes(node, [source.known["shapes"] for source in node.inputs()])


def _compute_is_set(node: plan.Node) -> bool:
    return node.facts.is_set(node, [source.known["is_set"] for source in node.inputs()])


def table_key(node: plan.Node) -> plan.Table | None:
    """Return the keyed table that contains the rows, at most one per key; None if there is none."""
    found = _down(node, "below_some_of_left", _SOME_OF_LEFT)
    return found if isinstance(found, plan.Table) and found.key is not None else None


def find_groups(node: plan.Node) -> plan.Aggregate | None:
    """Return the aggregate that contains the rows, one per group; they may be named. None without
    one."""
    node = _some_of(node)
    node = node if naming_by(node) is None else _some_of(node.inputs()[0])
    node = _some_of(node.inputs()[0]) if _shows_outcomes(node) else node
    return node if isinstance(node, plan.Aggregate) else None


def _shows_outcomes(node: plan.Node) -> bool:
    """Return True for rows of an input with outcomes of aggregates replaced by their values."""
    if not isinstance(node, plan.Extend) or node.keep:
        return False
    columns = node.columns
    return len(columns) == bindings(node.input) and attempts.shows_outcomes(columns)


def naming(node: plan.Node) -> Naming | None:
    """Return the naming of the aggregate that contains the rows; None if they are not named."""
    return naming_by(_some_of(node))


def _some_of(node: plan.Node) -> plan.Node:
    """Return the lowest node that contains the rows."""
    return _down(node, "some_of", _SOME_OF)


def shows_parts(node: plan.Node) -> bool:
    """Return True if the node hides the bindings that it sorts by."""
    return isinstance(node, plan.OrderBy) and node.shown is not None


def below_wheres(node: plan.Node) -> plan.Node:
    """Return the node below all filters."""
    return _down(node, "below_wheres", (plan.Where,))


def _down(node: plan.Node, name: str, kinds: tuple[type[plan.Node], ...]) -> plan.Node:
    """Return the first node down the left that is of none of `kinds`; cache it in the nodes
    above."""
    passed: list[plan.Node] = []
    while name not in node.known and isinstance(node, kinds) and not shows_parts(node):
        passed.append(node)
        node = node.inputs()[0]
    found: plan.Node = node.known.get(name, node)
    for each in passed:
        each.known[name] = found
    return found


def is_nested(node: plan.Node) -> bool:
    """Return True for rows with other rows inside, which are found by a key."""
    return isinstance(node, plan.Select) and isinstance(naming_by(node), Nesting)


def key_of_group(node: plan.Node) -> Callable[[Any], Any]:
    """Return the function that returns the key of a row's group."""
    how = naming(node)
    if isinstance(how, Nesting):
        return how.key  # type: ignore[no-any-return]
    return itemgetter(0) if how is None or how.generated else attrgetter(how.columns[0])


_SOME_OF = (plan.Where, plan.OrderBy, plan.Top, plan.View, plan.Previous)
_SOME_OF_LEFT = (
    *(plan.Where, plan.Distinct, plan.OrderBy, plan.Top, plan.SemiJoin, plan.AntiJoin),
    *(plan.Difference, plan.DifferenceAll, plan.View),
)


def keeps_identity(node: plan.Node) -> bool:
    """Return True if a row is emitted as the object that a stored table holds."""
    return bool(fact(node, "keeps_identity", _keeps_identity))


def _keeps_identity(node: plan.Node) -> bool:
    """Return True if rows are emitted as the objects of a stored table, by the kind of the node."""
    match node:
        case plan.Table():
            return node.stored
        case plan.Settled(segment):
            return bool(segment.keeps_identity)
        case plan.Where() | plan.UnionAll() | plan.Negate() | plan.Shared() | plan.View():
            return all(source.known["keeps_identity"] for source in node.inputs())
        case _:
            return False


def is_interned(node: plan.Node) -> bool:
    """Return True if equal rows are one object: the row of one stored table.

    State above may be stored by `id(row)`, which costs a tenth of hashing a dataclass by value.
    """
    return keeps_identity(node) and len(tables(node)) == 1


def may_be_negative(node: plan.Node) -> bool:
    """Return True if a row of the node, or of its inputs, may have a negative weight.

    `negate` makes negative weights; a table that is not stored accepts the deletion of a row that
    was never inserted.
    """
    return bool(fact(node, "may_be_negative", _may_be_negative))


def _may_be_negative(node: plan.Node) -> bool:
    """Return True if rows may have negative weights: below a negation or an unstored table.

    A stream refuses removals.
    """
    match node:
        case plan.Table():
            return not node.stored and node.time is None
        case plan.Settled(segment):
            return bool(segment.may_be_negative)
        case plan.Negate():
            return True
        case _:
            return any(source.known["may_be_negative"] for source in node.inputs())


def only_present(node: plan.Node) -> plan.Node:
    """Return the rows of positive weight; the node itself if no weight may be negative."""
    if not may_be_negative(node) or isinstance(node, _PRESENT):
        return node
    match node:
        case plan.Where(source):
            return replace(node, input=only_present(source))
        case plan.OrderBy(source, _, None, 0):
            return replace(node, input=only_present(source))
        case _:
            return plan.DifferenceAll(node, plan.Empty(bindings(node)))


def of_either_sign(rows: plan.Node) -> plan.Node:
    """Return one copy of each row with a weight, also with a negative one.

    Return `rows` unchanged if no weight can be negative.
    """
    if not may_be_negative(rows):
        return rows
    return plan.UnionAll(plan.Distinct(rows), plan.Distinct(plan.Negate(rows)))


_PRESENT = (plan.Aggregate, plan.Distinct, plan.Reduce, plan.Top, plan.SetOperation)
"""Nodes that emit rows of positive weight only."""


def tables(node: plan.Node) -> tuple[plan.Table, ...]:
    """Return all tables that the plan reads, each once."""
    found: tuple[plan.Table, ...] = fact(node, "tables", _tables)
    return found


def reads_stream(node: plan.Node) -> bool:
    """Return True if a table that a node reads is a stream."""
    for table in tables(node):  # noqa: SIM110 (half the calls of `any`)
        if table.time is not None:
            return True
    return False


def _tables(node: plan.Node) -> tuple[plan.Table, ...]:
    """Return the tables that a plan reads, each once; a tuple of an input is shared if possible."""
    if isinstance(node, plan.Settled):
        below: tuple[plan.Table, ...] = node.segment.tables
        return below
    read = [source.known["tables"] for source in node.inputs()]
    several = read if len(read) == 1 else dict.fromkeys(read)
    if len(several) == 1:  # so that deep plans share one tuple
        (below,) = several
        return below
    own = (node,) if isinstance(node, plan.Table) else ()
    every = [*own, *(table for found in several for table in found)]
    return tuple({id(table): table for table in every}.values())


def nodes(node: plan.Node, until: Callable[[plan.Node], bool] | None = None) -> list[plan.Node]:
    """Return a plan's nodes, each once, inputs first; no nodes below one that `until` accepts."""
    found: dict[int, plan.Node] = {}
    waiting: list[tuple[plan.Node, bool]] = [(node, False)]
    while waiting:
        current, complete = waiting.pop()
        if complete:
            found[id(current)] = current
        elif id(current) not in found:
            waiting.append((current, True))
            if until is None or not until(current):
                for source in current.inputs()[::-1]:
                    waiting.append((source, False))
    return list(found.values())


def degree(node: plan.Node) -> float:
    """Return the number of deltas of deltas until nothing of the database is read (`facts.py`).

    It is infinite if there is no end.
    """
    found: float = fact(node, "degree", _degree)
    return found


def _degree(node: plan.Node) -> float:
    return node.facts.degree(node, [source.known["degree"] for source in node.inputs()])


Names = tuple[str | None, ...]
_SAME = (
    *(plan.Where, plan.Distinct, plan.OrderBy, plan.Top, plan.SemiJoin, plan.AntiJoin),
    *(plan.View, plan.Shared, plan.UnionAll, plan.SetOperation),
)
_SAME_NAMES = (*_SAME, plan.Unnest)
_PAIRS = (plan.Join, plan.OuterJoin, plan.Product)


def binding_names(node: plan.Node) -> Names:
    """Return the name of each binding, None without a name."""
    found: Names = fact(node, "binding_names", _compute_binding_names)
    return found


def columns(node: plan.Node, of_sql: Sequence[str] | None = None) -> list[str] | None:
    """Return the names of the columns of rows with several; None for other rows.

    They are keys and aggregates, or the bindings, if one has a name; unnamed bindings are called by
    their places. `of_sql` are the names in SQL.
    """
    if of_sql is not None:
        return list(of_sql)
    how = naming(node)
    fields = _fields_in_order(node) if how is None else how.columns
    if fields is not None:
        return list(fields)
    called = binding_names(node)
    if any(called):
        return [name or str(place) for place, name in enumerate(called)]
    aggregate = find_groups(node)
    if aggregate is None:
        return None
    names = ["key"] * (aggregate.key is not None) + [a.label for a in aggregate.aggregates]
    return [f"{n}_{i}" if names.count(n) > 1 else n for i, n in enumerate(names)]


def _fields_in_order(node: plan.Node) -> tuple[str, ...] | None:
    """Return the field names of ordered named rows, beside which are their sort keys; None for
    other rows."""
    while isinstance(node, plan.Where):
        node = node.input
    rows = node.input if isinstance(node, plan.OrderBy) and node.shown == 1 else None
    made = rows.columns[0] if isinstance(rows, plan.Extend) and not rows.keep else None
    body = made.body if isinstance(made, Lifted) else None
    if not isinstance(body, Call) or not isinstance(body.function, Constant):
        return None
    names: tuple[str, ...] | None = getattr(body.function.value, "_fields", None)
    return names if names and body.arguments == all_parameters(len(names)) else None


def written_names(node: plan.Node, of_sql: Sequence[str] | None = None) -> list[str] | None:
    """Return the names of columns that the user gave, for JSON; None if one is given twice."""
    names = of_sql if of_sql is not None else any(binding_names(node)) and columns(node)
    return list(names) if names and len({*names}) == len(names) else None


def _compute_binding_names(node: plan.Node) -> Names:
    """Return the names of a node's bindings, where they are known; else None."""
    if isinstance(node, plan.Extend):
        count = bindings(node)
        return (*node.names, *[None] * count)[:count]
    if isinstance(node, _PAIRS):
        left: Names = node.left.known["binding_names"]
        right: Names = node.right.known["binding_names"]
        is_new = len(right) == 1 and right[0] not in left
        return (*left, right[0] if is_new else None)
    if isinstance(node, _SAME_NAMES):
        return (*node.inputs()[0].known["binding_names"], None)[: bindings(node)]
    return (None,) * bindings(node)


def name_columns(node: plan.Node, naming: Naming) -> plan.Select:
    """Return the rows of an aggregate, or other bindings, as records."""
    parameters = all_parameters(len(naming.columns))
    kind = constant(naming.kind)
    if naming.generated:
        body = Call(kind, parameters)
    else:
        body = Call(kind, (), tuple(zip(naming.columns, parameters, strict=True)))
    name = f"{naming.kind.__name__}({', '.join(naming.columns)})"
    identity = ("named", body)
    made = Opaque(naming, len(parameters), name, caller(), (), identity, "the names of aggregate")
    return plan.Select(node, Lifted(body, naming.columns, (made,), len(parameters), made))


def naming_by(node: plan.Node) -> Naming | None:
    """Return the naming that a node is, or None."""
    return naming_of(node.function) if isinstance(node, plan.Select) else None


# Inputs whose rows matter to a node only by their presence, not by their weights.


def with_present(node: plan.Node, change: Callable[[plan.Node], plan.Node]) -> plan.Node:
    """Change the inputs whose rows matter to a node only by their presence.

    Return the node itself if they stay, or if it has none.
    """
    match node:
        case plan.Distinct(source):
            inner = change(source)
            return node if inner is source else plan.Distinct(inner)
        case (
            plan.Union(left, right) | plan.Difference(left, right) | plan.Intersection(left, right)
        ):
            a, b = change(left), change(right)
            return node if a is left and b is right else replace(node, left=a, right=b)
        case plan.SemiJoin(_, right) | plan.AntiJoin(_, right):
            b = change(right)
            return node if b is right else replace(node, right=b)
        case _:
            return node
