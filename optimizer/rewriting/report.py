"""Explain an optimized query: the plan before and after, the rules, the opaque callables.

    as written
      where s.age > 30
        ...
    optimized
      ...
    runs as
      ...
    rules: make_join, split_where
    opaque: slow (people.py:31), in where
      a 'for' statement at line 33
      write it as one expression, or as names, choices and returns

`close_recursions` turns rows inside a recursion into a query outside of it.

    inside a fixpoint      over the result of the fixpoint
    inside an iteration    over all its rounds: one more relation of it, a set, to which each
                           round adds its rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Attempt,
    Expr,
    First,
    Function,
    Lifted,
    Operation,
    Or,
    conjuncts,
    parts,
    reads,
    walk,
)
from optimizer.expressions.operand_checks import ORDERS
from optimizer.expressions.simplification import unproven
from optimizer.expressions.text import text
from optimizer.lifting import folds
from optimizer.plans.explain import Drawing, Explanation, StateBound, explain, headline, source_text
from optimizer.plans.join_lists import forwards, ways_of
from optimizer.plans.multiway import bound_of
from optimizer.plans.properties import free, nodes
from optimizer.plans.side_conditions import calls_may_raise, has_keys, ranges_of, residual
from optimizer.plans.strata import FORMS, substituted_with_forms
from optimizer.rewriting.optimize import OptimizedPlan
from optimizer.rules.read_bitwise_tests import condition_of
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import functions, substituted, with_inputs
from optimizer.traverse import rebuilt as rebuilt_plan

OURS = frozenset({"read_callables"})
MORE = "; "
"""Separator between the parts of a node's place."""
NO_LEVELS: Mapping[str, str] = MappingProxyType({})
SHORT = (int, float, str, bytes, bool, type(None), tuple, frozenset)


def report(
    written: plan.Node,
    optimized: OptimizedPlan,
    runs: Drawing,
    where: Callable[[plan.Node], str | None] = lambda node: None,
    *,
    levels: Mapping[str, str] = NO_LEVELS,
    bounded: StateBound | None = None,
) -> Explanation:
    """Explain a query's plan, and how it `runs`; of one over streams, if its state is `bounded`.

    `where` returns the place where a node runs, or None; `levels` are the places of a nest's
    levels, if it runs as parts of these.
    """
    read = rebuilt_plan(written, read_callables)
    before, after = explain(read, source_text), explain(optimized.plan, source_text)
    lines = ["as written", *_indent_lines(before)]
    lines += ["optimized", *_indent_lines(after)] if after != before else []
    lines += ["runs as", *_indent_lines(runs.text())]
    fired = [name for name in optimized.fired if name not in OURS and after != before]
    lines.append(f"rules: {', '.join(fired) or 'none'}")
    lines += _constant_lines(read)
    has_bitwise = "read_bitwise_tests" in optimized.fired
    for node in nodes(optimized.plan):
        lines += _bitwise(node) or _explain_unkeyed(node, has_bitwise=has_bitwise)
        lines += _explain_whole_recursion(node)
    for function, reason in optimized.opaque():
        lines += _opaque(function, reason)
    asked = () if levels else nodes(optimized.plan)
    places = {headline(node): where(node) for node in asked}
    lines += _place_lines({head: place for head, place in places.items() if place is not None})
    lines += [f"{name}: {place}" for name, place in levels.items()]
    bound = StateBound() if bounded is None else bounded
    made = Explanation("\n".join([*lines, *[str(bound)] * (not bound)]), runs)
    made.bounded = bound
    return made


def _place_lines(places: dict[str, str]) -> Iterator[str]:
    """Iterate over the places of nodes, from the lowest to the highest.

    Nodes that run together in several parts refer to the highest of them.
    """
    highest = {place: head for head, place in places.items() if MORE in place}
    for head, place in places.items():
        top = highest.get(place, head)
        yield f"{head}: {place if top == head else f'together with {top}'}"


def as_read(written: plan.Node) -> Explanation:
    """Explain a plan as written, with lifted callables as expressions."""
    return explain(rebuilt_plan(written, read_callables), source_text)


def _indent_lines(text: str) -> Iterator[str]:
    return (f"  {line}" for line in text.splitlines())


def _opaque(function: Opaque, reason: str) -> list[str]:
    """Return the lines for a callable that was not lifted, with the reason."""
    kind = "called as it is" if function.is_part else "opaque"
    lines = [f"{kind}: {function}, in {function.role}", *_indent_lines(reason)]
    if folds.folds_of(function.function):
        lines.append("  of a bag that was changed it goes over what changed")
    return lines


def _bitwise(node: plan.Node) -> list[str]:
    """Explain a `&` or `|` that is not rewritten to `and` or `or`."""
    test, of = condition_of(node)
    part = None if test is None else unproven(test.body, of)
    if test is None or part is None:
        return []
    return [
        f"`&` or `|` is asked as written: {headline(node)}",
        f"  {text(part, test.names)} may be no bool: declare its fields as built-in types",
        "  or write `and` and `or`",
    ]


def _explain_unkeyed(node: plan.Node, *, has_bitwise: bool) -> list[str]:
    """Explain a join that looks at every pair, although it has a predicate."""
    if not isinstance(node, plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin):
        return []
    on = node.match.on
    if on is None or has_keys(node) or _is_passed_by_most(residual(node)):
        return []
    if isinstance(node, plan.SemiJoin | plan.AntiJoin) and bound_of(node) is not None:
        return []
    if ranges_of(node) is not None:
        late = isinstance(on, Lifted) and any(_pairs_up(t) for t in conjuncts(on.body))
        return (
            [f"found by a range: {headline(node)}", f"  {_hint(on, has_bitwise=has_bitwise)}"]
            if late
            else []
        )
    return [f"every pair is asked: {headline(node)}", f"  {_hint(on, has_bitwise=has_bitwise)}"]


def _explain_whole_recursion(node: plan.Node) -> list[str]:
    """Explain a condition of a recursion that its first rows would decide, if nothing raised."""
    match node:
        case plan.Where(plan.Fixpoint(best=(None,)) as fixpoint, Lifted(body)):
            ways = ways_of(fixpoint.bodies[0])
        case _:
            return []
    if not any(
        all(forwards(way, test, may_raise=True) for way in ways) for test in conjuncts(body)
    ):
        return []
    raising = next((n for n in nodes(fixpoint) if free(n) and calls_may_raise(n)), None)
    if raising is None:
        return []
    return [
        f"asked of all rows of the recursion: {headline(node)}",
        f"  {headline(raising)} may raise for rows that the condition would leave out",
        '  read declared fields only, or materialize with on_error="drop"',
    ]


def _hint(on: Function, *, has_bitwise: bool) -> str:
    """Return the advice for a join that finds no partners by key."""
    tests = conjuncts(on.body) if isinstance(on, Lifted) else ()
    if has_bitwise and any(map(_is_equation, tests[1:])):
        return "both sides of `&` are asked, and one may raise: use `and`, the equation first"
    if any(map(_is_of_both_sides, tests)):
        return "a side of an equation reads both rows: write each side over one row, or declare int"
    if any(map(_is_equation, tests[1:])):
        return "an equation comes after a condition that may raise: put it first"
    if any(isinstance(test, Or) and any(map(_is_equation, walk(test))) for test in tests):
        return "each part of an `or` needs a `left == right`, before anything that may raise"
    if any(map(_compares_sums, tests)):
        return "a side of `<` reads both rows: write each side over one row, or declare int"
    return "a join needs `left == right` among its conditions to look partners up"


def _is_equation(test: Expr) -> bool:
    return isinstance(test, Operation) and test.operator == "=="


def _is_of_both_sides(test: Expr) -> bool:
    """Return True for an equation of which a side reads rows of several inputs."""
    match test:
        case Operation("==", sides):
            return any(len(reads(side)) > 1 for side in sides)
        case _:
            return False


def _compares_sums(test: Expr) -> bool:
    """Return True for a comparison of which a side reads rows of several inputs."""
    return any(
        isinstance(part, Operation)
        and part.operator in ORDERS
        and any(map(_reads_both, parts(part)))
        for part in walk(test)
    )


def _reads_both(expr: Expr) -> bool:
    return len(reads(expr)) > 1


def _is_passed_by_most(test: Function | None) -> bool:
    """Return True if only pairs that are equal by a key fail a residual predicate."""
    if test is None:
        return True
    tests = conjuncts(test.body) if isinstance(test, Lifted) else ()
    return bool(tests) and all(map(_negates_equation, tests))


def _negates_equation(test: Expr) -> bool:
    match test:
        case Attempt(inner) | First(_, inner):
            return _negates_equation(inner)
        case Operation("not", (inner,)):
            return any(map(_pairs_up, conjuncts(inner)))
        case _:
            return False


def _pairs_up(test: Expr) -> bool:
    return _is_equation(test) and len(reads(test)) > 1


def _constant_lines(read: plan.Node) -> list[str]:
    """Return the variables whose values the query holds as constants."""
    values: dict[str, str] = {}
    for node in nodes(read):
        for function in functions(node):
            for origin in function.origins if isinstance(function, Lifted) else ():
                for capture in origin.captures:
                    if not capture.is_live and isinstance(capture.frozen, SHORT):
                        values[capture.name] = f"{capture.name} = {capture.frozen!r:.60}"
    return [f"constants: {', '.join(values.values())}"] if values else []


def close_recursions(rows: plan.Node, definitions: Mapping[Any, plan.Node]) -> plan.Node:
    """Return rows over the results of recursions; over all rounds of an iteration, as a set."""
    while open_levels := free(rows):
        inside = {level: free(definitions[level]) for level in open_levels}
        level = next(k for k in open_levels if all(k not in inside[other] for other in inside))
        of = definitions[level]
        if isinstance(of, plan.Iterate):
            rows = _of_all_rounds(of, rows)
        else:
            rows = substituted(rows, level, partial(_component_of, of))
    return rows


def _of_all_rounds(of: plan.Iterate, rows: plan.Node) -> plan.Node:
    """Return the rows of one binding that a query inside an iteration has in any round."""
    place = len(of.starts)
    before = plan.Recursive(of.level, place, "errors", is_set=False)
    made = replace(
        of,
        starts=(*of.starts, plan.Empty(1)),
        bodies=(*of.bodies, plan.Union(before, rows)),
        names=(*of.names, "errors"),
        max_rounds=of.max_rounds + 1 if of.max_rounds else 0,
        tolerances=(*of.tolerances, None) if of.tolerances else (),
    )
    return plan.Component(made, place)


def _component_of(of: plan.Node, read: plan.Recursive) -> plan.Node:
    assert isinstance(of, plan.Fixpoint)
    return plan.Component(of, read.index) if len(of.bodies) > 1 else of


def with_own_levels(root: plan.Node) -> plan.Node:
    """Return the plan with a level of its own for each recursion; itself if they have that already.

    Recursions that are not inside each other may have the same level; this distinguishes them.
    """
    every = [n for n in nodes(root, until=_is_view) if isinstance(n, plan.Fixpoint | plan.Iterate)]
    if len({node.level for node in every}) == len(set(every)):
        return root
    numbers = [node.level for node in every if isinstance(node.level, int)]
    first = 1 + max(numbers, default=0)  # bodies may read outer levels
    levels: dict[plan.Node, int] = {}

    def number_level(node: plan.Node) -> plan.Node:
        if not isinstance(node, plan.Fixpoint | plan.Iterate):
            return node
        level = levels.setdefault(node, first + len(levels))
        named = partial(replace, level=level)
        bodies = [substituted_with_forms(body, node.level, named) for body in node.bodies]
        return replace(node, level=level, bodies=tuple(bodies))

    made: dict[int, plan.Node] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        below = () if _is_view(node) else (*node.inputs(), *FORMS.parts(node))
        missing = [each for each in below if id(each) not in made]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if _is_view(node):
            made[id(node)] = node
        elif id(node) not in made:
            found = number_level(with_inputs(node, [made[id(s)] for s in node.inputs()]))
            made[id(node)] = found
            if found is not node:
                FORMS.carry(node, found, lambda part: made[id(part)])
    return made[id(root)]


def _is_view(node: plan.Node) -> bool:
    return isinstance(node, plan.View)


def rebuild_to_views(
    root: plan.Node,
    change: Callable[[plan.Node, plan.Node], plan.Node],
    known: Mapping[int, plan.Node],
) -> plan.Node:
    """Return the plan with every node changed, inputs first, down to the views that it reads.

    `change` gets the node over its new inputs, and as it was. Nodes that are `known` stay as given.
    """
    made: dict[int, plan.Node] = dict(known)
    for node in nodes(root, until=lambda node: isinstance(node, plan.View)):
        if id(node) in made:
            continue
        if isinstance(node, plan.View):
            made[id(node)] = node
        else:
            inputs = [made[id(source)] for source in node.inputs()]
            made[id(node)] = change(with_inputs(node, inputs), node)
    return made[id(root)]
