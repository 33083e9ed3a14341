"""Replace an unnest of nested rows by a join.

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

The node above may also be a where, bind or aggregate; select_many keeps no bag, and becomes a
select of the join. Nodes in between, further unnests and joins too, are applied to the rows without
the bag, at all depths. Ordered inner rows are the same rows, a window the rows in it; the order
is lost.

Sound:  for inner rows that cannot be negative: a group has n copies of a value that occurs n times.
        The keys are keys of groups, computed of the same rows. The sort keys of rows are
        computed, but not compared.
Needs:  no node above reads the bag itself, and the other columns cannot raise.
Pays:   a bag for each group, and all of its rows for each row inside that changes.
Source: [slender] unnesting; *unnest . nest = id* of nested relational algebra.
"""

from __future__ import annotations

from collections.abc import Iterator

from optimizer import plan
from optimizer.expr import Expr, Lifted, row_names
from optimizer.expressions.text import is_too_long
from optimizer.plans.join_lists import extend_of, outputs
from optimizer.plans.properties import bindings, fact
from optimizer.subqueries import unnested_bags
from optimizer.traverse import functions, with_functions, with_inputs


def flatten_nest(node: plan.Node) -> plan.Node:
    """Replace unnests of nested rows by joins, if possible; other nodes unchanged."""
    match node:
        case plan.SelectMany(source, Lifted()):
            return _elements(
                node, _open_unnests(source, frozenset()) or unnested_bags.as_it_is(source)
            )
        case plan.Select() | plan.Extend() | plan.Aggregate() if _has_unnest(node.input):
            for kept in _ways(_unnests(node.input)):
                read = _open_unnests(node.input, kept)
                if read is None or read.node is node.input:
                    continue
                made = _above(node, read)
                if made is not None:
                    return made
    return node


def _elements(node: plan.SelectMany, read: unnested_bags.RowSubstitution) -> plan.Node:
    """Return the elements of a collection of the new rows in `read`.

    Return `node` unchanged if the collection still reads a bag, or if no row is replaced.
    """
    assert isinstance(node.function, Lifted)
    bag = read.over(node.function.body)
    if unnested_bags.reads_bag(bag):
        return node
    found = unnested_bags.flatten_bag(read.node, bag)
    if found is not None:
        return plan.Select(
            found.node, _callable_with_origins(found.element, node.function, found.node)
        )
    if read.node is node.input:
        return node
    return plan.SelectMany(read.node, _callable_with_origins(bag, node.function, read.node))


# Nodes in between.


def _ways(unnests: list[plan.Node]) -> Iterator[frozenset[plan.Node]]:
    """Iterate over sets of unnests that stay, because their bags are read: none, some of the
    highest, or some of the lowest."""
    yield frozenset()
    for count in range(1, len(unnests)):
        yield frozenset(unnests[-count:])
        yield frozenset(unnests[:count])


def _inputs_between(node: plan.Node) -> tuple[plan.Node, ...]:
    """Return the inputs of a node whose unnest may be opened for the node's readers; () if none."""
    match node:
        case plan.Where() | plan.Unnest():
            return (node.input,)
        case plan.OuterJoin(kind="left") | plan.SemiJoin() | plan.AntiJoin():
            return (node.left,)
        case plan.Product() | plan.Join():
            return (node.left, node.right)
        case _:
            return ()


def _has_unnest(node: plan.Node) -> bool:
    return bool(fact(node, "has_unnest", _find_unnest))


def _find_unnest(node: plan.Node) -> bool:
    if isinstance(node, plan.Unnest):
        return True
    return any(source.known["has_unnest"] for source in _inputs_between(node))


def _unnests(node: plan.Node) -> list[plan.Node]:
    """Return all unnests in between, the lowest first."""
    found = [
        each for source in _inputs_between(node) if _has_unnest(source) for each in _unnests(source)
    ]
    return [*found, node] if isinstance(node, plan.Unnest) else found


def _open_unnests(
    node: plan.Node, kept: frozenset[plan.Node]
) -> unnested_bags.RowSubstitution | None:
    """Return a node without its unnests of nests, except those kept; None if their bags are
    read."""
    if not _has_unnest(node):
        return unnested_bags.as_it_is(node)
    sources = _inputs_between(node)
    inputs = [_open_unnests(source, kept) for source in sources]
    if None in inputs:
        return None
    reads = [each for each in inputs if each is not None]
    if isinstance(node, plan.Unnest) and node not in kept:
        found = _without_bag(node, reads[0])
        if found is not None:
            return found
    if all(read.node is source for read, source in zip(reads, sources, strict=True)):
        return unnested_bags.as_it_is(node)
    others = [unnested_bags.as_it_is(each) for each in node.inputs()[len(reads) :]]
    return unnested_bags.above(node, *reads, *others)


def _without_bag(
    node: plan.Unnest, read: unnested_bags.RowSubstitution
) -> unnested_bags.RowSubstitution | None:
    """Return the rows of an unnest, over rows that replace its input's; None if the bag is not a
    nest's."""
    if not isinstance(node.function, Lifted):
        return None
    bag = read.over(node.function.body)
    found = None if unnested_bags.reads_bag(bag) else unnested_bags.flatten_bag(read.node, bag)
    if found is None:
        return None
    return unnested_bags.RowSubstitution(found.node, (*map(found.over, read.row), found.element))


# Readers of the rows.


def _above(
    node: plan.Select | plan.Extend | plan.Aggregate, read: unnested_bags.RowSubstitution
) -> plan.Node | None:
    """Return a node over rows that replace its input's; None if a callable reads a bag that is
    gone."""
    if isinstance(node, plan.Extend):
        bodies = list(map(read.over, outputs(node)))
        if any(map(unnested_bags.reads_bag, bodies)) or any(map(is_too_long, bodies)):
            return None
        columns = [None] * len(node.keep) + list(node.columns)
        made = [
            _callable_with_origins(b, c, read.node) for b, c in zip(bodies, columns, strict=True)
        ]
        return extend_of(read.node, made, node.names)
    if any(f.value is None and f.name != "Count" for f in getattr(node, "aggregates", ())):
        return None
    changed = {id(f): read.function(f) for f in functions(node)}
    if None in changed.values():
        return None
    return with_inputs(with_functions(node, lambda f: changed[id(f)] or f), [read.node])


def _callable_with_origins(body: Expr, of: object, node: plan.Node) -> Lifted:
    origins = of.origins if isinstance(of, Lifted) else ()
    return Lifted(body, row_names(bindings(node)), origins, bindings(node))
