"""What the optimizer did, in words: the plan before and after, the rules, what it could not read.

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Expr, Function, Lifted, Operation, Or, conjuncts, reads, walk
from optimizer.expressions.booleans import unproven
from optimizer.expressions.text import text
from optimizer.lifting import folds
from optimizer.plans.bounds import bound_of
from optimizer.plans.drawing import Drawing
from optimizer.plans.explain import Explanation, explain, headline, source_text
from optimizer.plans.properties import nodes
from optimizer.plans.ranges import ranges_of
from optimizer.plans.side_conditions import has_keys
from optimizer.rewriting.optimize import Optimized
from optimizer.rules.read_bitwise_tests import condition_of
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import functions, rebuilt

OURS = frozenset({"read_callables"})
MORE = "; "
"""Between the parts of where a node runs."""
NO_LEVELS: Mapping[str, str] = MappingProxyType({})
SHORT = (int, float, str, bytes, bool, type(None), tuple, frozenset)


def report(
    written: plan.Node,
    optimized: Optimized,
    runs: Drawing,
    where: Callable[[plan.Node], str | None] = lambda node: None,
    *,
    levels: Mapping[str, str] = NO_LEVELS,
) -> Explanation:
    """Everything there is to say of a query's plan, and how it `runs`; `where` a node does, if that
    is a question, or the `levels` of a nest are, if it runs as parts of these."""
    read = rebuilt(written, read_callables)
    before, after = explain(read, source_text), explain(optimized.plan, source_text)
    lines = ["as written", *_indented(before)]
    lines += ["optimized", *_indented(after)] if after != before else []
    lines += ["runs as", *_indented(runs.text())]
    fired = [name for name in optimized.fired if name not in OURS and after != before]
    lines.append(f"rules: {', '.join(fired) or 'none'}")
    lines += _captured(read)
    has_bitwise = "read_bitwise_tests" in optimized.fired
    for node in nodes(optimized.plan):
        lines += _bitwise(node) or _unkeyed(node, has_bitwise=has_bitwise)
    for function, reason in optimized.opaque():
        lines += _opaque(function, reason)
    asked = () if levels else nodes(optimized.plan)
    places = {headline(node): where(node) for node in asked}
    lines += _placed({head: place for head, place in places.items() if place is not None})
    lines += [f"{name}: {place}" for name, place in levels.items()]
    return Explanation("\n".join(lines), runs)


def _placed(places: dict[str, str]) -> Iterator[str]:
    """Where nodes run, from the lowest to the highest; what is said of several in several parts is
    said of the highest of them, which the others go with."""
    highest = {place: head for head, place in places.items() if MORE in place}
    for head, place in places.items():
        top = highest.get(place, head)
        yield f"{head}: {place if top == head else f'together with {top}'}"


def as_read(written: plan.Node) -> Explanation:
    """A plan as it was written, with the callables that can be read as expressions."""
    return explain(rebuilt(written, read_callables), source_text)


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in text.splitlines())


def _opaque(function: Opaque, reason: str) -> list[str]:
    kind = "called as it is" if function.is_part else "opaque"
    lines = [f"{kind}: {function}, in {function.role}", *_indented(reason)]
    if folds.folds_of(function.function):
        lines.append("  of a bag that was changed it goes over what changed")
    return lines


def _bitwise(node: plan.Node) -> list[str]:
    """What to say of a `&` or `|` that is not taken for `and` or `or`."""
    test, of = condition_of(node)
    part = None if test is None else unproven(test.body, of)
    if test is None or part is None:
        return []
    return [
        f"`&` or `|` is asked as written: {headline(node)}",
        f"  {text(part, test.names)} may be no bool: declare its fields as built-in types",
        "  or write `and` and `or`",
    ]


def _unkeyed(node: plan.Node, *, has_bitwise: bool) -> list[str]:
    """What to say of a join that looks at every pair, though it has a predicate."""
    if not isinstance(node, plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin):
        return []
    on = node.match.on
    if on is None or has_keys(node):
        return []
    if isinstance(node, plan.Join) and ranges_of(node) is not None:
        late = isinstance(on, Lifted) and any(_pairs_up(t) for t in conjuncts(on.body))
        return (
            [f"found by a range: {headline(node)}", f"  {_hint(on, has_bitwise=has_bitwise)}"]
            if late
            else []
        )
    if isinstance(node, plan.SemiJoin | plan.AntiJoin) and bound_of(node) is not None:
        return []
    return [f"every pair is asked: {headline(node)}", f"  {_hint(on, has_bitwise=has_bitwise)}"]


def _hint(on: Function, *, has_bitwise: bool) -> str:
    tests = conjuncts(on.body) if isinstance(on, Lifted) else ()
    if has_bitwise and any(map(_is_equation, tests[1:])):
        return "both sides of `&` are asked, and one may raise: use `and`, the equation first"
    if any(map(_is_equation, tests[1:])):
        return "an equation comes after a condition that may raise: put it first"
    if any(isinstance(test, Or) and any(map(_is_equation, walk(test))) for test in tests):
        return "each part of an `or` needs a `left == right`, and all but the last must never raise"
    return "a join needs `left == right` among its conditions to look partners up"


def _is_equation(test: Expr) -> bool:
    return isinstance(test, Operation) and test.operator == "=="


def _pairs_up(test: Expr) -> bool:
    return _is_equation(test) and len(reads(test)) > 1


def _captured(read: plan.Node) -> list[str]:
    """The variables whose values the query holds as constants."""
    values: dict[str, str] = {}
    for node in nodes(read):
        for function in functions(node):
            for origin in function.origins if isinstance(function, Lifted) else ():
                for capture in origin.captures:
                    if not capture.is_live and isinstance(capture.frozen, SHORT):
                        values[capture.name] = f"{capture.name} = {capture.frozen!r:.60}"
    return [f"constants: {', '.join(values.values())}"] if values else []
