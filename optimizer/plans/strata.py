"""Strata of recursions, bodies of iterations, and the forms that translations replaced.

`in_strata` splits a definition into strata: relations that depend on each other stay together.

    reach  <-  edges, reach                         stratum 1: fixpoint reach
    others <-  nodes not in reach                   stratum 2: a query over stratum 1

A relation that does not depend on itself is no recursion. A relation may negate and aggregate
relations that do not depend on it.

Source: stratified negation: Apt, Blair, Walker, 1988.

`check_stratified` refuses a recursion that depends on its own negation or aggregate.

A relation that contains a row if it does not contain it has no smallest solution. Recursion may
pass through monotone inputs (more rows in, no fewer rows out), and through the left side of a
negation; never through the side whose rows exclude others.

    fixpoint 'reachable' depends on its own negation
      reachable -> anti_join (right input) -> reachable

Source: stratified negation: Apt, Blair, Walker, *Towards a Theory of Declarative Knowledge*, 1988.

`over_given` splits an iteration into its inputs, and bodies over stand-ins for them.

ranks <- select(join(shares, ranks))  U  nothing

inputs    start, shares, nothing
bodies    select(join(given 1, given 0))  U  given 2

`with_form` stores the form that a translation took with the plan that it returned.

The check of a translation evaluates this form, and so shares nothing with the translation. The node
itself holds the form: a node that a rule makes of it has none. When a recursion gets its level, the
form gets it too (`plans_in_form`, `over_parts`).
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
from optimizer.plans.clauses import aggregates_itself, by_left_row, is_over_recursion
from optimizer.plans.components import strongly_connected
from optimizer.plans.monotone import refused_aggregates
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
    """Return the plan of each relation; `finish` is called with each remaining fixpoint."""
    made: dict[int, plan.Node] = {}
    for group in _group_relations([_relations_of_body(node, body) for body in node.bodies]):
        made |= zip(group, _stratum(node, group, made, finish), strict=True)
    return [made[index] for index in range(len(node.bodies))]


def _stratum(
    node: plan.Fixpoint, group: list[int], made: dict[int, plan.Node], finish: Finish
) -> list[plan.Node]:
    """Return the plans of relations that depend on each other; `made` has the lower strata."""
    places = {index: place for place, index in enumerate(group)}

    def refer_to_stratum(part: plan.Recursive) -> plan.Node:
        known = made.get(part.index)
        return replace(part, index=places[part.index]) if known is None else known

    bodies = [
        substituted_with_forms(node.bodies[index], node.level, refer_to_stratum) for index in group
    ]
    best = tuple(node.best[index] for index in group)
    if (
        len(group) == 1
        and best == (None,)
        and group[0] not in _relations_of_body(node, node.bodies[group[0]])
    ):
        return [plan.Distinct(bodies[0])]
    names = tuple(node.names[index] for index in group)
    fixpoint = finish(plan.Fixpoint(tuple(bodies), node.level, names, best, node.max_rounds))
    if len(group) == 1:
        return [fixpoint]
    return [plan.Component(fixpoint, place) for place in range(len(group))]


def _relations_of_body(node: plan.Fixpoint, body: plan.Node) -> set[int]:
    """Return the relations of a definition that a body reads."""
    return {part.index for part in relations_read(body, node.level)}


def _group_relations(reads: list[set[int]]) -> list[list[int]]:
    """Group relations that read each other, directly or not; each group after all that it reads."""
    return strongly_connected(dict(enumerate(reads)))


Step = tuple[str, str]
"""The input that the recursion passes through, and its barrier: a negation, an aggregate, ..."""

REMEDY = "  move the anti_join, difference or aggregate outside the fixpoint"
OPERATOR_REMEDY = "  move the operator outside the fixpoint"
WITHOUT_NEGATIVE = (
    *(plan.Distinct, plan.Difference, plan.DifferenceAll, plan.Intersection, plan.IntersectionAll),
    *(plan.Aggregate, plan.Reduce, plan.Top, plan.OrderBy, plan.Fixpoint),
)
"""Nodes whose rows have no negative weight, whatever they read."""


def check_stratified(node: plan.Fixpoint) -> None:
    """Raise `StratificationError` if a relation depends on itself by an input that is not
    monotone."""
    level = node.level
    has_own = aggregates_itself(node)
    refused = refused_aggregates(node) if has_own else {}
    for index, body in enumerate(node.bodies):
        for part in _nodes_of_rounds(body, level):
            if has_own and is_over_recursion(part) and id(part) not in refused:
                continue
            for source, (through, what) in _forbidden(part):
                if level not in free(source):
                    continue
                reached = _relation_indexes(node, source)
                back = _way_back(node, index, reached)
                if back:
                    cycle = " -> ".join([node.names[index], through, *back])
                    why = refused.get(id(part))
                    remedy = OPERATOR_REMEDY if what == "operator" else REMEDY
                    shown = "" if why is None else f"  not monotone: {why}\n"
                    raise StratificationError(
                        f"fixpoint {', '.join(map(repr, node.names))} depends on its own {what}\n"
                        f"  {cycle}\n{shown}{remedy}"
                    )


def check_positive(node: plan.Fixpoint) -> None:
    """Raise `PlanError` if rows of negative weight are read: a derived row is present or absent."""
    for body in node.bodies:
        read = nodes(body, until=_has_no_negative)
        if any(isinstance(part, plan.Negate) for part in read):
            raise PlanError(
                f"fixpoint {', '.join(map(repr, node.names))} reads rows of negate(), whose weights"
                " are negative\n  distinct() of their sum with others has each row that is there"
            )


def _has_no_negative(part: plan.Node) -> bool:
    """Return True if no row has a negative weight; a recursive node is not searched as a whole."""
    return isinstance(part, WITHOUT_NEGATIVE) and not free(part)


def _nodes_of_rounds(body: plan.Node, level: int) -> Iterator[plan.Node]:
    """Iterate over the nodes of a body, and of the first round of an iteration in it."""
    for part in nodes(body):
        yield part
        if isinstance(part, plan.Iterate) and any(level in free(each) for each in part.starts):
            for body in unrolled(replace(part, times=1)):
                yield from nodes(body)


def _forbidden(node: plan.Node) -> Iterator[tuple[plan.Node, Step]]:
    """Iterate over the inputs of a node that recursion may not pass through.

    Each input comes with the text of the step and the barrier, for the error message. An aggregate
    per left row has no such input.
    """
    if isinstance(node, plan.Aggregate) and by_left_row(node) is not None:
        return
    inputs = node.inputs()
    for place, (source, barrier) in enumerate(zip(inputs, node.facts.recursion(node), strict=True)):
        if barrier is not None:
            yield source, (_input_text(node, place), barrier)


def _input_text(node: plan.Node, place: int) -> str:
    """Return a node and its input at `place` in words."""
    if isinstance(node, plan.Fixpoint):
        return "fixpoint with keep="
    side = f" ({('left', 'right')[place]} input)" if len(node.inputs()) == 2 else ""
    return headlines.name(node) + side


def _relation_indexes(node: plan.Fixpoint, source: plan.Node) -> list[int]:
    """Return the relations of a fixpoint that a part of a body reads."""
    return [part.index for part in relations_read(source, node.level)]


def _way_back(node: plan.Fixpoint, target: int, reached: list[int]) -> list[str] | None:
    """Return the names of relations on the path from one of `reached` to the target; None if none
    leads there."""
    reads = [_relation_indexes(node, body) for body in node.bodies]
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
    """Return the inputs of an iteration, and the iteration over stand-ins for them.

    Inputs are its starts, and the other inputs of its bodies. In the bodies, the relations of a
    round are numbered first, then the inputs that stay from round to round.
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
    return tuple(inputs), replace(node, starts=starts, bodies=_shape_bodies(level, starts, bodies))


def replace_by_given(root: plan.Node) -> plan.Node:
    """Replace relations that are not defined in a plan by `Given`, rows that the caller passes.

    A plan without such relations is unchanged.
    """
    for level in free(root):
        root = substituted(root, level, lambda part: plan.Given(part.index, part.is_set, part.of))
    return root


def _shape_bodies(
    level: Any, starts: Sequence[plan.Recursive], bodies: Sequence[plan.Node]
) -> tuple[plan.Node, ...]:
    """Return the bodies with shapes for the relations of a round.

    They are the shapes of the starts, if bodies over such rows emit such rows.
    """
    known = [start.of for start in starts]
    while True:
        made = all_substituted(bodies, level, lambda part: _with_known_shape(part, known))
        found = [
            of if shapes(body) == of else (None,) * len(of)
            for of, body in zip(known, made, strict=True)
        ]
        if found == known:
            return tuple(made)
        known = found


def _with_known_shape(part: plan.Recursive, known: Sequence[Shapes]) -> plan.Recursive:
    return replace(part, of=known[part.index]) if part.index < len(known) else part


@record
class InRows:
    """A node with sub-queries in its callables."""

    node: plan.Node


@record
class BesideRows:
    """Rows, joined with the rows of a query for each of them.

    With `is_left`, a row whose query is empty is joined with None.
    """

    left: plan.Node
    query: plan.Node
    arguments: tuple[Expr, ...]
    is_left: bool


@record
class OfGroups:
    """A query for each group of rows; in it, the rows of the group are `Recursive` of a level."""

    source: plan.Node
    key: Function
    query: plan.Node
    level: Any


@record
class ByPolicy:
    """A query with a policy for rows that raise; `read` and `checks` as in `guard_query`."""

    query: plan.Node
    policy: Literal["null", "drop"]
    read: bool
    checks: bool = False


@record
class QuantifiedComparison:
    """A comparison of a row of `count` values with ANY or ALL rows of a query, with NULL as None.

    `wanted` is the truth value to test for: the comparison may also be NULL.
    """

    symbol: str
    is_all: bool
    wanted: bool
    count: int


Form = InRows | BesideRows | OfGroups | ByPolicy


def with_form(made: plan.Node, form: Form) -> plan.Node:
    """Return a node with its form; a node that is part of the form stays as it is."""
    if not any(made is node for each in _plans_given(form) for node in nodes(each)):
        made.known["asked form"] = form
    return made


def _plans_given(form: Form) -> tuple[plan.Node, ...]:
    """Return the plans that a form holds."""
    match form:
        case InRows(node) | ByPolicy(node):
            return (node,)
        case BesideRows(left, query):
            return left, query
        case OfGroups(source, _, query):
            return source, query


def old_form(node: plan.Node) -> Form | None:
    """Return the form that a translation turned into a node; None for other nodes."""
    found: Form | None = node.known.get("asked form")
    return found


def plans_in_form(form: Form) -> tuple[plan.Node, ...]:
    """Return the plans in a form: the inputs of its nodes, and the queries in their callables."""
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
    """Return the form with its parts replaced."""

    def asking(expr: Expr) -> Expr:
        match expr:
            case Subquery() | Quantified():
                return replace(expr, query=made(expr.query))
            case _:
                return expr

    def rewrite_callable(f: Function) -> Function:
        return f.with_body(transform(f.body, asking)) if isinstance(f, Lifted) else f

    match form:
        case InRows(node):
            node = with_inputs(node, map(made, node.inputs()))
            return InRows(with_functions(node, rewrite_callable))
        case ByPolicy(query):
            return replace(form, query=made(query))
        case BesideRows(left, query, arguments):
            arguments = tuple([transform(each, asking) for each in arguments])
            return replace(form, left=made(left), query=made(query), arguments=arguments)
        case OfGroups(source, key, query):
            return replace(form, source=made(source), key=rewrite_callable(key), query=made(query))


def substituted_with_forms(
    root: plan.Node, level: Any, value: Callable[[plan.Recursive], plan.Node]
) -> plan.Node:
    """Substitute relations as `substituted` does, also in the forms of nodes."""
    return all_substituted((root,), level, value, FORMS)[0]


class _Forms:
    """The forms of nodes, for `Beside`: facts that are copied with their nodes."""

    def parts(self, node: plan.Node) -> tuple[plan.Node, ...]:
        form = old_form(node)
        return () if form is None else plans_in_form(form)

    def carry(
        self, node: plan.Node, made: plan.Node, part: Callable[[plan.Node], plan.Node]
    ) -> None:
        """Copy the form of a node to `made`, its plans replaced by `part`; nothing if it has
        none."""
        form = old_form(node)
        if form is not None:
            made.known["asked form"] = over_parts(form, part)


FORMS = _Forms()
"""Copies forms when nodes are rebuilt only to change their levels."""


def levels_in(form: Form) -> frozenset[Any]:
    """Return the levels of the recursive relations that a form reads."""
    found = frozenset[Any]().union(*map(free, plans_in_form(form)))
    return found - {form.level} if isinstance(form, OfGroups) else found


def _bodies(node: plan.Node) -> list[Expr]:
    return [f.body for f in functions(node) if isinstance(f, Lifted)]


def _queries(*exprs: Expr) -> list[plan.Node]:
    parts = [part for expr in exprs for part in walk(expr)]
    return [part.query for part in parts if isinstance(part, Subquery | Quantified)]
