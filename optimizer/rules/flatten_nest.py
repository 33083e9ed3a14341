"""Take rows that were put inside of others, and out again, as they were: unnest of nest is a join.

    select (c.name, o.id)                                       select (c.name, o.id)
      unnest orders                                               join c.id == o.customer
        bind c, orders=row[1] if row is not None else Bag()  ->     table customers
          left_join c.id == row[0]                                  table orders
            table customers
            aggregate Collect(o) by o.customer
              table orders

    select (key, o.id)                                          select (key, o.id)
      unnest rows                                                 extend o.town, o
        aggregate Collect(o) by o.town                       ->     table orders
          table orders

So do where, bind and aggregate above; select_many keeps no bag, and is a select of the join. Rows
inside that stand in an order are the same rows, of a window those in it; the order is lost.

Sound:  for rows inside that cannot be negative: a group has each value as often as it is there. The
        keys are those of groups, and computed of the same rows. What rows stand by is computed of
        each, but is not compared.
Needs:  nothing above reads the bag itself, and what is beside it raises nothing.
Pays:   a bag for each group, and all of its rows for each row inside that changes.
Source: [slender] unnesting; *unnest . nest = id* of nested relational algebra.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    NONE,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Local,
    Operation,
    Parameter,
    all_parameters,
    constant,
    reads,
    row_names,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.compose import is_too_long, over
from optimizer.expressions.knowledge import Arranges, is_value, total
from optimizer.plans.extended import extend_of, outputs
from optimizer.plans.properties import bindings, may_be_negative, shapes
from optimizer.traverse import functions, with_functions, with_inputs

BAG = Local("a bag")
"""Stands for what is read of a bag that is not there any more."""


def flatten_nest(node: plan.Node) -> plan.Node:
    match node:
        case plan.SelectMany(source, Lifted(body)):
            found = _flat(source, body)
            if found is not None:
                made, row = found
                return plan.Select(made, _function(row[-1], node.function, made))
        case plan.Select() | plan.Extend() | plan.Aggregate():
            tests, below = _wheres(node.input)
            if isinstance(below, plan.Unnest) and isinstance(below.function, Lifted):
                found = _flat(below.input, below.function.body)
                if found is not None:
                    return _above(node, tests, *found) or node
    return node


def _wheres(node: plan.Node) -> tuple[list[plan.Where], plan.Node]:
    """The conditions above a node, the last first."""
    found = []
    while isinstance(node, plan.Where):
        found.append(node)
        node = node.input
    return found, node


def _above(
    node: plan.Select | plan.Extend | plan.Aggregate,
    tests: Sequence[plan.Where],
    made: plan.Node,
    row: tuple[Expr, ...],
) -> plan.Node | None:
    """A node, and conditions below it, over other rows, in which a row is read so."""
    for test in reversed(tests):
        p = _moved(test.predicate, row, made)
        if p is None:
            return None
        made = plan.Where(made, p)
    if isinstance(node, plan.Extend):
        bodies = [over(body, row) for body in outputs(node)]
        if any(map(_reads_bag, bodies)):
            return None
        columns = [None] * len(node.keep) + list(node.columns)
        return extend_of(
            made,
            [_function(b, c, made) for b, c in zip(bodies, columns, strict=True)],
            node.names,
        )
    if any(f.value is None and f.name != "Count" for f in getattr(node, "aggregates", ())):
        return None
    changed = {id(f): _moved(f, row, made) for f in functions(node)}
    if None in changed.values():
        return None
    whole = with_functions(node, lambda f: changed[id(f)] or f)
    return with_inputs(whole, [made])


def _moved(f: Function, row: tuple[Expr, ...], made: plan.Node) -> Lifted | None:
    if not isinstance(f, Lifted):
        return None
    body = over(f.body, row)
    return None if _reads_bag(body) or is_too_long(body) else _function(body, f, made)


def _reads_bag(expr: Expr) -> bool:
    return any(part is BAG for part in walk(expr))


def _function(body: Expr, of: Function | None, node: plan.Node) -> Lifted:
    origins = of.origins if isinstance(of, Lifted) else ()
    return Lifted(body, row_names(bindings(node)), origins, bindings(node))


# The nest below.


def _flat(node: plan.Node, bag: Expr) -> tuple[plan.Node, tuple[Expr, ...]] | None:
    """The join that gives the rows of a node with each element of a bag in them, and how these
    rows, and the element, are read in it."""
    row: tuple[Expr, ...] = all_parameters(bindings(node))
    while isinstance(node, plan.Extend | plan.Select):
        made, of = outputs(node), shapes(node.input)
        row, bag = tuple([over(expr, made) for expr in row]), over(bag, made)
        if not all(is_value(expr, of) for expr in made):
            return None
        node = node.input
    bag, is_arranged = _arranged(bag)
    if isinstance(node, plan.Aggregate):
        return _of_groups(node, row, bag, is_arranged=is_arranged)
    if isinstance(node, plan.OuterJoin) and isinstance(bag, Parameter):
        return _below(node, row, bag.index)
    place = _bag_of(bag)
    if place is None or not all(total(e, ()) for e in row if not _is_bag(e)):
        return None
    joined = _joined(node, *place, is_arranged)
    if joined is None:
        return None
    flat, element = joined
    return flat, (*[BAG if place[0] in reads(expr) else expr for expr in row], element)


def _below(
    node: plan.OuterJoin, row: tuple[Expr, ...], place: int
) -> tuple[plan.Node, tuple[Expr, ...]] | None:
    """As `_flat`, of a left join with other groups of rows that have the bag already."""
    match, count = node.match, bindings(node.left)
    if node.kind != "left" or match.on is not None or place >= count:
        return None
    found = _flat(node.left, Parameter(place))
    if found is None or not all(total(e, ()) for e in row if not _is_bag(e)):
        return None
    flat, (*lefts, element) = found
    moved = None if match.left_key is None else _moved(match.left_key, tuple(lefts), flat)
    if match.left_key is not None and moved is None:
        return None
    made = replace(node, left=flat, match=replace(match, left_key=moved))
    rights = [Parameter(bindings(flat) + n) for n in range(bindings(node.right))]
    whole = (*lefts, *rights)
    return made, (*[over(expr, whole) for expr in row], element)


def _arranged(bag: Expr) -> tuple[Expr, bool]:
    """What is put in an order, and whether it is."""
    match bag:
        case Call(Constant(Arranges()), (collected,)):
            return collected, True
        case _:
            return bag, False


def _of_groups(
    node: plan.Aggregate, row: tuple[Expr, ...], bag: Expr, *, is_arranged: bool
) -> tuple[plan.Node, tuple[Expr, ...]] | None:
    """The rows that groups were made of, each with its key, in the place of groups with bags."""
    source, key = node.input, node.key
    if node.row is not None or not isinstance(key, Lifted) or may_be_negative(source):
        return None
    if not isinstance(bag, Parameter) or not bag.index:
        return None
    folded = node.aggregates[bag.index - 1]
    if folded.name != "Collect" or not isinstance(folded.value, Lifted):
        return None
    others = [expr for expr in row if not reads(_arranged(expr)[0]) <= {0, bag.index}]
    kept = [expr for expr in row if bag.index not in reads(expr)]
    if others or not all(total(expr, ()) for expr in kept):
        return None
    value, element = _element(folded.value.body, source, is_arranged=is_arranged)
    columns = [key, folded.value.with_body(value)]
    flat = [expr if bag.index not in reads(expr) else BAG for expr in row]
    return extend_of(source, columns), (*flat, over(element, (Parameter(1),)))


def _element(value: Expr, source: plan.Node, *, is_arranged: bool) -> tuple[Expr, Expr]:
    """What is collected of a row, and how the row inside is read in that."""
    if not is_arranged:
        return value, Parameter(0)
    if isinstance(value, Display) and total(value.items[0], shapes(source)):
        return value.items[1], Parameter(0)
    return value, Item(Parameter(0), constant(1))


def _is_bag(expr: Expr) -> bool:
    return _bag_of(expr) is not None


def _bag_of(expr: Expr) -> tuple[int, int] | None:
    """Which binding, and which item of it, is the bag of a group; or else nothing."""
    match _arranged(expr)[0]:
        case Conditional(
            Operation("is not", (Parameter(place), none)),
            Item(Parameter(same), Constant(int() as number)),
            Constant(Sized() as empty),
        ) if none == NONE and place == same and not len(empty):
            return place, number
        case _:
            return None


def _joined(
    node: plan.Node, place: int, number: int, is_arranged: bool
) -> tuple[plan.Node, Expr] | None:
    """Left joins, of which one finds groups, with an inner one that finds the rows of these; and
    how what is collected of them is read."""
    match node:
        case plan.OuterJoin(left, right, match, "left") if match.on is None:
            if place == bindings(left):
                return _with_rows(left, right, match, number, is_arranged)
            is_below = place < bindings(left)
            below = _joined(left, place, number, is_arranged) if is_below else None
            if below is None or not isinstance(match.left_key, Lifted):
                return None
            return (
                None
                if place in reads(match.left_key.body)
                else (replace(node, left=below[0]), below[1])
            )
    return None


def _with_rows(
    left: plan.Node, groups: plan.Node, match: plan.Match, number: int, is_arranged: bool
) -> tuple[plan.Node, Expr] | None:
    """The join with the rows of groups in the place of these."""
    match groups, match.right_key:
        case plan.Aggregate(source, Lifted() as key, aggregates, row=None), Lifted() as right_key:
            folded = aggregates[number - 1]
            if folded.name != "Collect" or not isinstance(folded.value, Lifted):
                return None
            if may_be_negative(source) or not _reads_key(right_key):
                return None
            place = Parameter(bindings(left))
            value, element = _element(folded.value.body, source, is_arranged=is_arranged)
            pair = tuple_of(key.body, value)
            if value == Parameter(0) and bindings(source) == 1:
                by = key.with_body(over(right_key.body, (pair,)))
                return plan.Join(left, source, replace(match, right_key=by)), place
            rows = plan.Select(source, key.with_body(pair))
            return plan.Join(left, rows, match), over(element, (Item(place, constant(1)),))
    return None


def _reads_key(f: Lifted) -> bool:
    """Whether it reads nothing but the first item of its only argument."""
    key = Item(Parameter(0), constant(0))
    return not reads(transform(f.body, lambda e: NONE if e == key else e))
