"""Strata of recursions and bodies of iterations, taken from the form of a query.

Take a definition apart into strata: relations that depend on each other stay together.

    reach  <-  edges, reach                         stratum 1: fixpoint reach
    others <-  nodes not in reach                   stratum 2: a query over stratum 1

A relation that does not lead back to itself is no recursion, and one that depends on others without
their depending on it may negate and aggregate them.

Source: stratified negation: Apt, Blair, Walker, 1988.

Refuse a recursion that depends on its own negation or aggregate: it has no meaning.

A relation that is to hold what it does not hold has no smallest solution. Recursion may go through
what is monotone (more rows in, no fewer rows out), and through the side of a negation whose rows
are kept; never through the side that takes rows away.

    fixpoint 'reachable' depends on its own negation
      reachable -> anti_join (right input) -> reachable

Source: stratified negation: Apt, Blair, Walker, *Towards a Theory of Declarative Knowledge*, 1988.

An iteration apart from what it reads: its inputs, and bodies over relations that are given.

ranks <- select(join(shares, ranks))  U  nothing

inputs    start, shares, nothing
bodies    select(join(given 1, given 0))  U  given 2

The form that a translation was given, kept beside the plan that it made of the form.

The check of a translation evaluates this form, and so shares nothing with the translation. It is
known of the node itself: a rule that makes another node of it leaves the form behind. Only where a
recursion gets its level, the form gets it too (`parts_of`, `over_parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from optimizer import plan
from optimizer.errors import PlanError, StratificationError
from optimizer.expr import Expr, Function, Lifted, Quantified, Subquery, transform, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.plans import headlines
from optimizer.plans.clauses import by_left_row
from optimizer.plans.properties import free, is_set, nodes, shapes
from optimizer.record import record
from optimizer.traverse import (
    all_substituted,
    functions,
    relations_read,
    substituted,
    unrolled,
    with_functions,
    with_inputs,
    without_iterations,
)

Finish = Callable[[plan.Fixpoint], plan.Fixpoint]


def in_strata(node: plan.Fixpoint, finish: Finish) -> list[plan.Node]:
    """The plan of each relation; `finish` is given each fixpoint that is left."""
    made: dict[int, plan.Node] = {}
    for group in _groups([_read(node, body) for body in node.bodies]):
        made |= zip(group, _stratum(node, group, made, finish), strict=True)
    return [made[index] for index in range(len(node.bodies))]


def _stratum(
    node: plan.Fixpoint, group: list[int], made: dict[int, plan.Node], finish: Finish
) -> list[plan.Node]:
    """The plans of relations that depend on each other; the plans of lower strata are made."""

    def named(part: plan.Recursive) -> plan.Node:
        known = made.get(part.index)
        return replace(part, index=group.index(part.index)) if known is None else known

    bodies = [substituted_with_forms(node.bodies[index], node.level, named) for index in group]
    best = tuple(node.best[index] for index in group)
    if len(group) == 1 and best == (None,) and group[0] not in _read(node, node.bodies[group[0]]):
        return [plan.Distinct(bodies[0])]
    names = tuple(node.names[index] for index in group)
    fixpoint = finish(plan.Fixpoint(tuple(bodies), node.level, names, best, node.max_rounds))
    if len(group) == 1:
        return [fixpoint]
    return [plan.Component(fixpoint, place) for place in range(len(group))]


def _read(node: plan.Fixpoint, body: plan.Node) -> set[int]:
    """The relations of a definition that a body reads."""
    return {part.index for part in relations_read(body, node.level)}


def _groups(reads: list[set[int]]) -> list[list[int]]:
    """Those that read each other, directly or not, together; each after all that it reads."""
    reached = [set(direct) for direct in reads]
    for _ in reads:
        for some in reached:
            some |= {far for near in [*some] for far in reached[near]}
    groups: list[list[int]] = []
    for index, mine in sorted(enumerate(reached), key=lambda pair: len(pair[1] | {pair[0]})):
        if not any(index in group for group in groups):
            groups.append(sorted({index} | {n for n in mine if index in reached[n]}))
    return groups


Step = tuple[str, str]
"""What the recursion goes through, and what it depends on there: its negation, an aggregate, ..."""

REMEDY = "  move the anti_join, difference or aggregate outside the fixpoint"
WITHOUT_NEGATIVE = (
    *(plan.Distinct, plan.Difference, plan.DifferenceAll, plan.Intersection, plan.Aggregate),
    *(plan.IntersectionAll, plan.Reduce, plan.Top, plan.OrderBy, plan.Fixpoint),
)
"""Nodes none of whose rows has a negative weight, whatever they read."""


def check_stratified(node: plan.Fixpoint) -> None:
    """Raise `StratificationError` if a relation depends on itself in a way that is not monotone."""
    level = node.level
    for index, body in enumerate(node.bodies):
        for part in _parts(body, level):
            for source, (through, what) in _forbidden(part):
                if level not in free(source):
                    continue
                reached = _names(node, source)
                back = _way_back(node, index, reached)
                if back:
                    cycle = " -> ".join([node.names[index], through, *back])
                    raise StratificationError(
                        f"fixpoint {', '.join(map(repr, node.names))} depends on its own {what}\n"
                        f"  {cycle}\n{REMEDY}"
                    )


def check_positive(node: plan.Fixpoint) -> None:
    """Raise `PlanError` if rows of negative weight are read: a derivation is there or not."""
    for body in node.bodies:
        read = nodes(body, until=_has_no_negative)
        if any(isinstance(part, plan.Negate) for part in read):
            raise PlanError(
                f"fixpoint {', '.join(map(repr, node.names))} reads rows of negate(), whose weights"
                " are negative\n  distinct() of their sum with others has each row that is there"
            )


def _has_no_negative(part: plan.Node) -> bool:
    """Whether no row has a negative weight; what is recursive may be taken apart for its rows."""
    return isinstance(part, WITHOUT_NEGATIVE) and not free(part)


def _parts(body: plan.Node, level: int) -> Iterator[plan.Node]:
    """The nodes of a body; the nodes of an iteration as they are in its first round."""
    for part in nodes(body):
        yield part
        if isinstance(part, plan.Iterate) and any(level in free(each) for each in part.starts):
            for body in unrolled(replace(part, times=1)):
                yield from nodes(body)


def _forbidden(node: plan.Node) -> Iterator[tuple[plan.Node, Step]]:
    """The inputs of a node that recursion may not come through."""
    if isinstance(node, plan.Aggregate) and by_left_row(node) is not None:
        return
    inputs = node.inputs()
    for place, (source, barrier) in enumerate(zip(inputs, node.facts.recursion(node), strict=True)):
        if barrier is not None:
            yield source, (_through(node, place), barrier)


def _through(node: plan.Node, place: int) -> str:
    """A node and one of its inputs, in words."""
    if isinstance(node, plan.Fixpoint):
        return "fixpoint with keep="
    side = f" ({('left', 'right')[place]} input)" if len(node.inputs()) == 2 else ""
    return headlines.name(node) + side


def _names(node: plan.Fixpoint, source: plan.Node) -> list[int]:
    """The relations of a fixpoint that a part of a body reads."""
    return [part.index for part in relations_read(source, node.level)]


def _way_back(node: plan.Fixpoint, target: int, reached: list[int]) -> list[str] | None:
    """The names of relations on the way from one of those reached to the target."""
    reads = [_names(node, body) for body in node.bodies]
    ways: dict[int, list[str]] = {i: [node.names[i]] for i in reached}
    waiting = list(ways)
    while waiting:
        at = waiting.pop(0)
        if at == target:
            return ways[at]
        for following in reads[at]:
            if following not in ways:
                ways[following] = [*ways[at], node.names[following]]
                waiting.append(following)
    return None


def over_given(node: plan.Iterate) -> tuple[tuple[plan.Node, ...], plan.Iterate]:
    """Where it starts and what its bodies read besides; and the iteration over these.

    In its bodies the relations of a round come first, then what stays from round to round.
    """
    level = node.level
    inputs: list[plan.Node] = list(node.starts)
    made: dict[int, plan.Node] = {}

    def stands(part: plan.Node) -> plan.Node:
        inputs.append(part)
        return plan.Recursive(level, len(inputs) - 1, "input", is_set(part), shapes(part))

    bodies = []
    for body in map(without_iterations, node.bodies):
        for part in nodes(body, until=lambda part: not free(part)):
            if id(part) in made:
                continue
            if not free(part):
                made[id(part)] = stands(part)
            else:
                made[id(part)] = with_inputs(part, [made[id(s)] for s in part.inputs()])
        bodies.append(made[id(body)])
    starts = tuple(
        plan.Recursive(level, index, name, False, shapes(start))
        for index, (name, start) in enumerate(zip(node.names, node.starts, strict=True))
    )
    return tuple(inputs), replace(node, starts=starts, bodies=_shaped(level, starts, bodies))


def handed(root: plan.Node) -> plan.Node:
    """A plan over rows that are handed in, in the place of relations that are not defined in it."""
    for level in free(root):
        root = substituted(root, level, lambda part: plan.Given(part.index, part.is_set, part.of))
    return root


def _shaped(
    level: Any, starts: Sequence[plan.Recursive], bodies: Sequence[plan.Node]
) -> tuple[plan.Node, ...]:
    """The bodies, in which it is known of the relations of a round what their rows are.

    It is what the rows are that they start with, if bodies over such rows make such rows.
    """
    known = [start.of for start in starts]
    while True:
        made = all_substituted(bodies, level, lambda part: _told(part, known))
        found = [
            of if shapes(body) == of else (None,) * len(of)
            for of, body in zip(known, made, strict=True)
        ]
        if found == known:
            return tuple(made)
        known = found


def _told(part: plan.Recursive, known: Sequence[Shapes]) -> plan.Recursive:
    return replace(part, of=known[part.index]) if part.index < len(known) else part


@record
class InRows:
    """A node with sub-queries in its callables."""

    node: plan.Node


@record
class BesideRows:
    """Rows, beside those that a query has for the values of each; with `is_left`, None beside a row
    for which the query has none."""

    left: plan.Node
    query: plan.Node
    arguments: tuple[Expr, ...]
    is_left: bool


@record
class OfGroups:
    """A query for each group of rows, in which these are `Recursive` of a level."""

    source: plan.Node
    key: Function
    query: plan.Node
    level: Any


@record
class ByPolicy:
    """A query in which rows that raise go by a policy; `read` and `checks` as in `guarded`."""

    query: plan.Node
    policy: Literal["null", "drop"]
    read: bool
    checks: bool = False


@record
class QuantifiedComparison:
    """A comparison of a row of `count` values with ANY or ALL rows of a query, with NULL as None.

    `wanted` is the truth that is asked for: the comparison may also be NULL.
    """

    symbol: str
    is_all: bool
    wanted: bool
    count: int


Form = InRows | BesideRows | OfGroups | ByPolicy


def with_form(made: plan.Node, form: Form) -> plan.Node:
    """Return a node that now knows its form; a node that was there before stays as it is."""
    if not any(made is node for each in _given(form) for node in nodes(each)):
        made.known["asked form"] = form
    return made


def _given(form: Form) -> tuple[plan.Node, ...]:
    match form:
        case InRows(node) | ByPolicy(node):
            return (node,)
        case BesideRows(left, query):
            return left, query
        case OfGroups(source, _, query):
            return source, query


def form_of(node: plan.Node) -> Form | None:
    """Return the form that a node was made of, if a translation made the node."""
    found: Form | None = node.known.get("asked form")
    return found


def parts_of(form: Form) -> tuple[plan.Node, ...]:
    """Return the plans in a form: what its nodes read, and the queries in their callables."""
    match form:
        case InRows(node):
            return (*node.inputs(), *_queries(*_bodies(node)))
        case ByPolicy(query):
            return (query,)
        case BesideRows(left, query, arguments):
            return (left, query, *_queries(*arguments))
        case OfGroups(source, key, query):
            asked = _queries(key.body) if isinstance(key, Lifted) else []
            return (source, query, *asked)


def over_parts(form: Form, made: Callable[[plan.Node], plan.Node]) -> Form:
    """Return the form with other plans in the place of its parts."""

    def asking(expr: Expr) -> Expr:
        match expr:
            case Subquery() | Quantified():
                return replace(expr, query=made(expr.query))
            case _:
                return expr

    def called(f: Function) -> Function:
        return f.with_body(transform(f.body, asking)) if isinstance(f, Lifted) else f

    match form:
        case InRows(node):
            node = with_inputs(node, map(made, node.inputs()))
            return InRows(with_functions(node, called))
        case ByPolicy(query):
            return replace(form, query=made(query))
        case BesideRows(left, query, arguments):
            arguments = tuple([transform(each, asking) for each in arguments])
            return replace(form, left=made(left), query=made(query), arguments=arguments)
        case OfGroups(source, key, query):
            return replace(form, source=made(source), key=called(key), query=made(query))


def substituted_with_forms(
    root: plan.Node, level: Any, value: Callable[[plan.Recursive], plan.Node]
) -> plan.Node:
    """Return the plan as `substituted` does; what was known of sub-queries in it stays known."""
    return all_substituted((root,), level, value, FORMS)[0]


class _Forms:
    """The forms of nodes, as what is known beside their inputs."""

    def parts(self, node: plan.Node) -> tuple[plan.Node, ...]:
        form = form_of(node)
        return () if form is None else parts_of(form)

    def carry(
        self, node: plan.Node, made: plan.Node, part: Callable[[plan.Node], plan.Node]
    ) -> None:
        form = form_of(node)
        if form is not None:
            made.known["asked form"] = over_parts(form, part)


FORMS = _Forms()
"""Forms are carried over where nodes are made anew only to have other levels."""


def levels_in(form: Form) -> frozenset[Any]:
    """Return the levels of the recursive relations that a form reads."""
    found = frozenset[Any]().union(*map(free, parts_of(form)))
    return found - {form.level} if isinstance(form, OfGroups) else found


def _bodies(node: plan.Node) -> list[Expr]:
    return [f.body for f in functions(node) if isinstance(f, Lifted)]


def _queries(*exprs: Expr) -> list[plan.Node]:
    parts = [part for expr in exprs for part in walk(expr)]
    return [part.query for part in parts if isinstance(part, Subquery | Quantified)]
