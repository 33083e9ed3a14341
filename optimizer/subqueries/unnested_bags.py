"""Replace an unnested bag by the rows that it was collected from.

    left_join c.id == row[0]                       join c.id == o.customer
      table customers                      ->        table customers
      aggregate Collect(o) by o.customer             table orders

`flatten_bag` finds the groups that a bag was made of, however far below: the nodes in between,
such as further joins, are applied to the rows without the bag. A `RowSubstitution` has rows that
replace others, with an expression for each replaced binding.

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
    one_value,
    reads,
    row_names,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import Arranges, Shapes, is_value, total
from optimizer.expressions.text import is_too_long, one_row, over
from optimizer.plans.join_lists import extend_of, outputs
from optimizer.plans.properties import bindings, may_be_negative, nodes, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import items
from optimizer.subqueries.raising import FOLDS_ANY, raises_nothing
from optimizer.traverse import called

BAG = Local("a bag")
"""Stands for a bag that the rows no longer have."""


@record
class RowSubstitution:
    """Rows that replace other rows: an expression for each of their bindings, and for an element.

    `element` is the element of the unnested bag, if there is one.
    """

    node: plan.Node
    row: tuple[Expr, ...]
    element: Expr = BAG

    def over(self, body: Expr) -> Expr:
        """Rewrite an expression over the replaced rows."""
        return over(body, self.row)

    def function(self, f: Function | None) -> Lifted | None:
        """Rewrite a callable of the replaced rows; None if it reads a bag that is gone."""
        return rebind(f, self.row, bindings(self.node))


def as_it_is(node: plan.Node) -> RowSubstitution:
    """Return rows that replace themselves."""
    return RowSubstitution(node, all_parameters(bindings(node)))


def rebind(f: Function | None, row: Sequence[Expr], count: int) -> Lifted | None:
    """Rewrite the callable `f` over `count` new bindings; `row` has an expression for each old
    binding.

    Return None if `f` is not lifted, or if the result reads a bag or is too long.
    """
    if not isinstance(f, Lifted):
        return None
    body = over(f.body, tuple(row))
    if reads_bag(body) or is_too_long(body):
        return None
    names = f.names if len(f.names) == count else row_names(count)
    return Lifted(body, names, f.origins, count)


def reads_bag(expr: Expr) -> bool:
    """Return True if an expression reads a bag that is gone."""
    return any(part is BAG for part in walk(expr))


# Above: a node over replaced rows.


def above(node: plan.Node, *inputs: RowSubstitution) -> RowSubstitution | None:
    """Return a node over rows that replace its inputs; None if it reads a bag that is gone."""
    (read, *_) = inputs
    match node:
        case plan.Where():
            p = read.function(node.predicate)
            return (
                None
                if p is None
                else RowSubstitution(plan.Where(read.node, p), read.row, read.element)
            )
        case plan.Unnest():
            f = read.function(node.function)
            last = Parameter(bindings(read.node))
            return (
                None if f is None else RowSubstitution(plan.Unnest(read.node, f), (*read.row, last))
            )
        case plan.Product() | plan.Join():
            made = pair_rows(node, *inputs)
            return made and _rotate_pairs(made)
        case plan.OuterJoin(kind="left") if inputs[1].node is node.right:
            return pair_rows(node, *inputs)
        case plan.SemiJoin() | plan.AntiJoin() if inputs[1].node is node.right:
            match = _rebind_match(node.match, inputs[0], inputs[1])
            if match is None:
                return None
            return RowSubstitution(
                replace(node, left=read.node, match=match), read.row, read.element
            )
        case _:
            return None


def pair_rows(
    node: plan.Product | plan.Join | plan.OuterJoin, left: RowSubstitution, right: RowSubstitution
) -> RowSubstitution | None:
    """Return pairs of rows, where expressions over the right row read its items.

    Return None if the match cannot be rewritten: it reads a bag that is gone, or is too long.
    """
    place = Parameter(bindings(left.node))
    own = _bindings_of(place, bindings(right.node))
    of_right = tuple([over(expr, own) for expr in right.row])
    whole = place if right.node is node.right else one_value(of_right)
    row = (*left.row, whole)
    element = left.element if right.element is BAG else over(right.element, own)
    if isinstance(node, plan.Product):
        return RowSubstitution(plan.Product(left.node, right.node), row, element)
    match = _rebind_match(node.match, left, right, row)
    if match is None:
        return None
    return RowSubstitution(
        replace(node, left=left.node, right=right.node, match=match), row, element
    )


def _rotate_pairs(read: RowSubstitution) -> RowSubstitution:
    """Rewrite pairs with pairs as pairs with one row after the other, each found by its key.

    join a == b.k                 join b.j == c
      A                             join a == b.k
      join b.j == c        ->         A
        B                             B
        C                           C
    """
    joined = read.node
    if not isinstance(joined, plan.Join) or not isinstance(joined.right, plan.Join):
        return read
    outer, inner, left = joined.match, joined.right.match, joined.right.left
    count, width, by = bindings(joined.left), bindings(left), outer.right_key
    if outer.on is not None or not isinstance(by, Lifted) or not _is_quiet_node(joined.right):
        return read
    key = over(by.body, (tuple_of(*all_parameters(width + 1)),))
    if not reads(key) <= set(range(width)) or not total(key, shapes(left)):
        return read
    own = by.with_body(over(key, _bindings_of(Parameter(0), width)))
    below = _rotate_pairs(as_it_is(plan.Join(joined.left, left, replace(outer, right_key=own))))
    of_left = tuple(map(below.over, _bindings_of(Parameter(count), width)))
    match = _rebind_match(inner, RowSubstitution(below.node, of_left), as_it_is(joined.right.right))
    if match is None:
        return read
    pair = tuple_of(*of_left, Parameter(bindings(below.node)))
    every = (*below.row[:count], pair)
    made = plan.Join(below.node, joined.right.right, match)
    return RowSubstitution(
        made, tuple([over(e, every) for e in read.row]), over(read.element, every)
    )


def _rebind_match(
    match: plan.Match,
    left: RowSubstitution,
    right: RowSubstitution,
    row: tuple[Expr, ...] | None = None,
) -> plan.Match | None:
    """Rewrite a match to other rows; None if one of its callables cannot be rewritten."""
    row = (*left.row, Parameter(bindings(left.node))) if row is None else row
    made = plan.Match(
        left.function(match.left_key),
        _of_one(match.right_key, right),
        rebind(match.on, row, bindings(left.node) + 1),
    )
    was, is_now = [
        [f is not None for f in (each.left_key, each.right_key, each.on)] for each in (match, made)
    ]
    return made if was == is_now else None


def _of_one(f: Function | None, right: RowSubstitution) -> Lifted | None:
    """Rewrite a callable of the right row, which is one value; None if that is impossible."""
    own = _bindings_of(Parameter(0), bindings(right.node))
    return rebind(f, (one_value([over(expr, own) for expr in right.row]),), 1)


def _bindings_of(row: Expr, count: int) -> tuple[Expr, ...]:
    """Return the `count` bindings of rows that are one value."""
    return (row,) if count == 1 else items(row, count)


# Below: the node that collects a bag.


def flatten_bag(node: plan.Node, bag: Expr) -> RowSubstitution | None:
    """Return the rows of a node with each element of a bag; None if its source was not found."""
    bag, is_arranged = _bag_in_order(bag)
    match node:
        case plan.Extend() | plan.Select():
            return _flatten_computed(node, bag, is_arranged)
        case plan.Aggregate():
            return _flatten_groups(node, bag, is_arranged)
        case plan.OuterJoin() if reads(bag) == {bindings(node.left)}:
            return _of_matches(node, bag, is_arranged)
        case plan.UnionAll(left, right):
            return _of_other(left, right, bag, is_arranged) or _of_other(
                right, left, bag, is_arranged
            )
        case plan.Where() | plan.Unnest() | plan.SemiJoin() | plan.AntiJoin() | plan.Product():
            return _further(node, _again(bag, is_arranged))
        case plan.Join() | plan.OuterJoin():
            return _further(node, _again(bag, is_arranged))
        case _:
            return None


_ARRANGED = Arranges()


def _bag_in_order(bag: Expr) -> tuple[Expr, bool]:
    """Return the bag without the call that sorts it, and True if there was one."""
    match bag:
        case Call(Constant(Arranges()), (collected,)):
            return collected, True
        case _:
            return bag, False


def _again(bag: Expr, is_arranged: bool) -> Expr:
    return Call(constant(_ARRANGED), (bag,)) if is_arranged else bag


def _further(node: plan.Node, bag: Expr) -> RowSubstitution | None:
    """Return the node over the flattened rows of the input that has the bag.

    Return None if no single input has it, or if a callable of the node may raise.
    """
    of, count = node.inputs(), bindings(node.inputs()[0])
    if not reads(bag) or not _is_quiet_node(node):
        return None
    if max(reads(bag)) < count:
        found = flatten_bag(of[0], bag)
        return found and above(node, found, *map(as_it_is, of[1:]))
    if isinstance(node, plan.Product | plan.Join) and reads(bag) == {count}:
        found = flatten_bag(node.right, one_row(bag, count, bindings(node.right)))
        return found and above(node, as_it_is(node.left), found)
    return None


def _is_quiet_node(node: plan.Node) -> bool:
    """Return True if the callables of a node, and the use of their results, cannot raise."""
    if isinstance(node, plan.Unnest):
        return raises_nothing(node)
    found = called(node, [shapes(source) for source in node.inputs()])
    return all(isinstance(f, Lifted) and total(f.body, of) for f, of in found)


def _flatten_computed(
    node: plan.Extend | plan.Select, bag: Expr, is_arranged: bool
) -> RowSubstitution | None:
    """Flatten a bag in the input of computed columns, and rewrite the columns to the new rows.

    `is_arranged`: True if a call sorts the bag. Return None if a column may raise, or if the source
    of the bag was not found.
    """
    made, of = outputs(node), shapes(node.input)
    if not all(is_value(expr, of) and total(_without_bags(expr), of) for expr in made):
        return None
    found = flatten_bag(node.input, _again(over(bag, made), is_arranged))
    return found and replace(found, row=tuple([found.over(expr) for expr in made]))


def _without_bags(expr: Expr) -> Expr:
    """Return an expression without bags and their sorting, which cannot raise."""

    def plain(each: Expr) -> Expr:
        found = _bag_of(each)
        return _bag_in_order(each)[0] if found is None else found[0]

    return transform(expr, plain)


def _of_other(
    node: plan.Node, other: plan.Node, bag: Expr, is_arranged: bool
) -> RowSubstitution | None:
    """Return the rows of one side, if the bags of the other side are empty; else None."""
    empty = _skip_shared(other)
    while isinstance(empty, plan.Extend | plan.Select):
        bag_there, empty = over(bag, outputs(empty)), empty.input
        if isinstance(bag_there, Constant) and not len(bag_there.value):
            known = {id(each) for each in nodes(node)}
            rest = [each for each in nodes(other) if id(each) not in known]
            is_quiet = all(map(raises_nothing, rest))
            return flatten_bag(_skip_shared(node), _again(bag, is_arranged)) if is_quiet else None
    return None


def _skip_shared(node: plan.Node) -> plan.Node:
    """Return the input of a shared node, which has one reader less now."""
    return node.input if isinstance(node, plan.Shared) else node


def _flatten_groups(node: plan.Aggregate, bag: Expr, is_arranged: bool) -> RowSubstitution | None:
    """Return the rows that groups were made of, each with its key, in place of groups with bags.

    Return None if the bag is not collected by the node, or rows may have negative weights.
    """
    source, key = node.input, node.key
    if node.row is not None or not isinstance(key, Lifted) or may_be_negative(source):
        return None
    if not isinstance(bag, Parameter) or not bag.index:
        return None
    folded = _collected_value(node, bag.index)
    if folded is None:
        return None
    value, element = _element(folded.body, shapes(source), is_arranged)
    columns = [key, folded.with_body(value)]
    row = (Parameter(0), *[BAG] * len(node.aggregates))
    return RowSubstitution(extend_of(source, columns), row, over(element, (Parameter(1),)))


def _collected_value(node: plan.Aggregate, number: int) -> Lifted | None:
    """Return the callable that a group collects; None if another aggregate may raise.

    `number` is the binding of the bag.
    """
    folded, of = node.aggregates[number - 1], shapes(node.input)
    others = [each for each in node.aggregates if each is not folded]
    is_quiet = all(
        each.name in FOLDS_ANY
        and (each.value is None or (isinstance(each.value, Lifted) and total(each.value.body, of)))
        for each in others
    )
    is_collected = folded.name == "Collect" and isinstance(folded.value, Lifted)
    return folded.value if is_collected and is_quiet else None  # type: ignore[return-value]


def _element(value: Expr, of: Shapes, is_arranged: bool) -> tuple[Expr, Expr]:
    """Return the collected value of a row, and how the inner row is read in it."""
    if not is_arranged:
        return value, Parameter(0)
    if isinstance(value, Display) and total(value.items[0], of):
        return value.items[1], Parameter(0)
    return value, Item(Parameter(0), constant(1))


def _bag_of(expr: Expr) -> tuple[Expr, int] | None:
    """Return the group, and the item of it that is the bag; None for other expressions."""
    match _bag_in_order(expr)[0]:
        case Conditional(
            Operation("is not", (group, none)),
            Item(same, Constant(int() as number)),
            Constant(Sized() as empty),
        ) if none == NONE and group == same and not len(empty):
            return group, number
        case _:
            return None


def _of_matches(node: plan.OuterJoin, bag: Expr, is_arranged: bool) -> RowSubstitution | None:
    """Return an inner join with the rows of groups, in place of a left join with the groups.

    Return None for another join, or if the bag is not one of the groups.
    """
    found, groups, match = _bag_of(bag), node.right, node.match
    last, row = Parameter(bindings(node.left)), (*all_parameters(bindings(node.left)), BAG)
    if found is None or found[0] != last or node.kind != "left" or match.on is not None:
        return None
    if not isinstance(groups, plan.Aggregate) or not isinstance(groups.key, Lifted):
        return None
    source, key, right_key = groups.input, groups.key, match.right_key
    folded = _collected_value(groups, found[1])
    if groups.row is not None or folded is None or may_be_negative(source):
        return None
    if not isinstance(right_key, Lifted) or not _reads_key(right_key):
        return None
    value, element = _element(folded.body, shapes(source), is_arranged)
    pair = tuple_of(key.body, value)
    if _is_free(pair, shapes(source)):
        source, pair = _move_below(source, pair)
        own = _bindings_of(Parameter(0), bindings(source))
        by = rebind(right_key, (over(pair, own),), 1)
        item = over(pair.items[1], _bindings_of(last, bindings(source)))
        made = plan.Join(node.left, source, replace(match, right_key=by))
        return _rotate_pairs(RowSubstitution(made, row, over(element, (item,))))
    rows = plan.Select(source, key.with_body(pair))
    inside = over(element, (Item(last, constant(1)),))
    return RowSubstitution(plan.Join(node.left, rows, match), row, inside)


def _move_below(node: plan.Node, expr: Display) -> tuple[plan.Node, Display]:
    """Move an expression below the nodes that computed its bindings, as far as these cannot
    raise."""
    while isinstance(node, plan.Select | plan.Extend):
        made, of = outputs(node), shapes(node.input)
        below = over(expr, made)
        if not all(_is_free(each, of) for each in made) or is_too_long(below):
            break
        assert isinstance(below, Display)
        node, expr = node.input, below
    return node, expr


def _is_free(expr: Expr, of: Shapes) -> bool:
    """Return True if an expression may be evaluated elsewhere, and more than once."""
    return is_value(expr, of) and total(_without_bags(expr), of)


def _reads_key(f: Lifted) -> bool:
    """Return True if a callable reads only the first item of its argument."""
    key = Item(Parameter(0), constant(0))
    return not reads(transform(f.body, lambda e: NONE if e == key else e))
