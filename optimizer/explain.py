"""Print a plan as a tree, one node a line, inputs indented below it.

>>> from optimizer.plan import Distinct, Table
>>> print(explain(Distinct(Table(1, "orders", None, True))))
distinct
  table orders
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from optimizer import plan
from optimizer.expr import Function
from optimizer.text import written


class Explanation(str):
    """A plan in words: a text that shows itself as it is, at a prompt too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(node: plan.Node, remark: Callable[[plan.Node], str] = lambda node: "") -> Explanation:
    """The plan as text; `remark` may add something at the end of a node's line."""
    return Explanation("\n".join(_lines(node, remark)))


def headline(node: plan.Node) -> str:
    """One node in words, without its inputs."""
    match node:
        case plan.Table(name=name, key=key, stored=stored):
            notes = [f"key {key}"] * (key is not None) + ["not stored"] * (not stored)
            return f"table {name}" + (f" ({', '.join(notes)})" if notes else "")
        case plan.Where(_, function):
            return f"where {written(function)}"
        case plan.Select(_, function):
            return f"select {written(function)}"
        case plan.Unnest(_, function):
            return f"unnest {written(function)}"
        case plan.SelectMany(_, function):
            return f"select_many {written(function)}"
        case plan.Join(_, _, match, wide):
            at_once = "" if wide is None else f", {len(wide.tests)} inputs at once"
            return f"join {_match(match)}".rstrip() + at_once
        case plan.OuterJoin(_, _, match, kind):
            return f"{kind}_join {_match(match)}"
        case plan.SemiJoin(_, _, match):
            return f"semi_join {_match(match)}"
        case plan.AntiJoin(_, _, match):
            return f"anti_join {_match(match)}"
        case plan.Aggregate(_, key, aggregates, factors):
            by = "" if key is None else f" by {written(key)}"
            kept = "" if factors is None else f", sums kept of {_factors(factors)}"
            return f"aggregate {', '.join(map(_folded, aggregates))}{by}{kept}"
        case plan.OrderBy(_, key, descending, limit, offset):
            return f"order_by {written(key)}" + _window(descending, limit, offset)
        case plan.Fixpoint(names=names, best=best):
            return f"fixpoint {', '.join(map(_defined, names, best))}"
        case plan.Component(fixpoint, index):
            return f"{fixpoint.names[index]} of"
        case plan.Recursive(name=name):
            return f"recursive {name}".rstrip()
        case plan.Iterate(name=name, times=times):
            return f"iterate {name}, {times} times"
        case _:
            return node_name(node)


def node_name(node: plan.Node) -> str:
    """The name of the method that makes such a node: `UnionAll` is `union_all`."""
    if isinstance(node, plan.OuterJoin):
        return f"{node.kind}_join"
    name = type(node).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")


def _lines(root: plan.Node, remark: Callable[[plan.Node], str]) -> Iterator[str]:
    """The lines of a plan; a part that several nodes read is shown in full once."""
    shown: set[int] = set()
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        line = "  " * depth + headline(node)
        if id(node) in shown and node.inputs():
            yield line + "  (as above)"
            continue
        shown.add(id(node))
        yield line + remark(node)
        waiting.extend((source, depth + 1) for source in reversed(node.inputs()))


def _match(match: plan.Match) -> str:
    """The condition of a join; where keys were found in it, these and what is left."""
    shown = [] if match.left_key is None else [_equation(match.left_key, match.right_key)]
    early = match.early
    if early is None:
        shown += [] if match.on is None else [f"on {written(match.on)}"]
        return " and ".join(shown)
    keys = ([s.function for s in side if s.is_key] for side in (early.left, early.right))
    shown += [_equation(a, b) for a, b in zip(*keys, strict=True)]
    shown += [] if early.rest is None else [f"on {written(early.rest)}"]
    for side, steps in (("left", early.left), ("right", early.right)):
        tests = [written(s.function) for s in steps if not s.is_key]
        shown += [f"{side} where {' and '.join(tests)}"] if tests else []
    return ", ".join(shown)


def _equation(left: Function | None, right: Function | None) -> str:
    return " == ".join(written(f) for f in (left, right) if f is not None)


def _defined(name: str, best: plan.Best | None) -> str:
    if best is None:
        return name
    kept = "Max" if best.largest else "Min"
    return f"{name} (keep {kept}({written(best.value)}) by {written(best.by)})"


def _folded(folded: plan.Folded) -> str:
    return f"{folded.name}({'' if folded.value is None else written(folded.value)})"


def _factors(factors: plan.Factors) -> str:
    """The sides of a join that are kept as sums by key."""
    shown = []
    for name, sums in (("left", factors.left), ("right", factors.right)):
        if sums is not None:
            inside = "" if sums.below is None else f" (sums kept of its {_factors(sums.below)})"
            shown.append(name + inside)
    return " and ".join(shown)


def _window(descending: bool, limit: int | None, offset: int) -> str:
    parts = ["descending"] * descending
    parts += [] if limit is None else [f"limit {limit}"]
    parts += [f"offset {offset}"] if offset else []
    return "".join(f", {part}" for part in parts)
