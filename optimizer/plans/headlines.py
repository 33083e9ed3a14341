"""The nodes of a plan in words, a line each, without their inputs.

    join s.last_name == m.last_name, left where s.age > 30
    aggregate Count() by r[0]

Each node states its function as a fact: a function of this module or of the node's module.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from optimizer.expr import Function
from optimizer.expressions.text import written


def name(node: Any) -> str:
    """Return the name of the method that makes such a node: `UnionAll` is `union_all`."""
    kind, method = getattr(node, "kind", None), getattr(node, "method", None)
    if kind is not None:
        return f"{kind}_join"
    if method is not None:
        return str(method)
    words = type(node).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in words).removeprefix("_")


def by_name(node: Any) -> str:
    return name(node)


def of_function(method: str, field: str) -> Callable[[Any], str]:
    """Return a headline of a method with its one callable."""
    return lambda node: f"{method} {written(getattr(node, field))}"


def table(node: Any) -> str:
    if node.is_value:
        return f"parameter {node.name}"
    if node.time is not None:
        return f"stream {node.name}"
    notes = [_key(node.key)] * (node.key is not None) + ["not stored"] * (not node.stored)
    return f"table {node.name}" + (f" ({', '.join(notes)})" if notes else "")


def _key(key: Any) -> str:
    """Return the key of a table: fields, or a callable."""
    read = getattr(key, "function", None)
    fields = read.__reduce__()[1] if isinstance(read, attrgetter) else (key,)
    return f"key {', '.join(map(str, fields))}"


def view(node: Any) -> str:
    return f"view {node.name or ''}".rstrip()


def join(node: Any) -> str:
    return f"{name(node)} {_match_text(node.match)}".rstrip()


def aggregate(node: Any) -> str:
    by = "" if node.key is None else f" by {written(node.key)}"
    return f"aggregate {', '.join(map(_fold_text, node.aggregates))}{by}"


def order_by(node: Any) -> str:
    return f"order_by {sorted_by(node.keys)}" + _window(node.limit, node.offset)


def fixpoint(node: Any) -> str:
    return f"fixpoint {', '.join(map(_definition_text, node.names, node.best))}"


def component(node: Any) -> str:
    return f"{node.input.names[node.index]} of"


def recursive(node: Any) -> str:
    return f"recursive {node.name}".rstrip()


def iterate(node: Any) -> str:
    """Return the headline of an iteration: names, number of rounds, tolerances and bound."""
    often = "until settled" if node.times is None else f"{node.times} times"
    parts = [f"iterate {', '.join(node.names)}, {often}"]
    parts += [
        f"tolerance {each.least:g} of {written(each.value)}" for each in _given_tolerances(node)
    ]
    return ", ".join([*parts, *[bound(node)] * node.is_tolerant()])


def bound(node: Any) -> str:
    """Return the bound of the distance between the rows with and without tolerance."""
    if node.contraction is None:
        return "no bound is known"
    return f"contraction {node.contraction:g} of the {node.norm}"


def tolerate(node: Any) -> str:
    return f"tolerate {node.tolerance.least:g} of {written(node.tolerance.value)}"


def _given_tolerances(node: Any) -> list[Any]:
    return [each for each in node.tolerances if each is not None]


def _match_text(match: Any) -> str:
    """Return the condition of a join."""
    shown = [] if match.left_key is None else [_equation_text(match.left_key, match.right_key)]
    shown += [] if match.on is None else [f"on {written(match.on)}"]
    return " and ".join(shown)


def _equation_text(left: Function | None, right: Function | None) -> str:
    return " == ".join(written(f) for f in (left, right) if f is not None)


def _definition_text(name: str, best: Any) -> str:
    """Return the name of a relation, with the rows that it keeps if it keeps the best only."""
    if best is None:
        return name
    if hasattr(best, "lattice"):
        return f"{name} (join {best.lattice.name}({written(best.value)}) by {written(best.by)})"
    kept = "Max" if best.largest else "Min"
    return f"{name} (keep {kept}({written(best.value)}) by {written(best.by)})"


def _fold_text(folded: Any) -> str:
    given = [] if folded.value is None else [written(folded.value)]
    given += ["skip_none=True"] * folded.skip_none
    return f"{folded.label}({', '.join(given)})"


def sorted_by(keys: Any) -> str:
    """Return the keys of an order; the directions of several keys as one writes them."""
    if len(keys) > 1:
        return ", ".join(map(_sort_key, keys))
    (key,) = keys
    parts = [written(key.function), *["descending"] * key.descending]
    return ", ".join([*parts, *[f"nulls {key.nulls}"] * (key.nulls is not None)])


def _sort_key(key: Any) -> str:
    """Return the text of a sort key: its callable, with direction and nulls where these are
    given."""
    nulls = "" if key.nulls is None else f", nulls={key.nulls!r}"
    if not key.descending and not nulls:
        return written(key.function)
    return f"{'desc' if key.descending else 'asc'}({written(key.function)}{nulls})"


def _window(limit: Any, offset: int) -> str:
    parts = [] if limit is None else [f"limit {getattr(limit, 'name', limit)}"]
    parts += [f"offset {offset}"] if offset else []
    return "".join(f", {part}" for part in parts)
