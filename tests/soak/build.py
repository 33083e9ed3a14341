"""A plan as a relation of the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Max,
    Min,
    Monoid,
    Sum,
    asc,
    desc,
)
from reactive import fixpoint as typed_fixpoint
from reactive import iterate as typed_iterate
from tests.soak.nodes import REDUCERS, Fold, Key, Node
from tests.soak.rows import CLASSES

fixpoint: Any = typed_fixpoint
iterate: Any = typed_iterate
Inside = Mapping[tuple[int, int], Any]
State = tuple[int, int]


def own(of: Any) -> Aggregate[Any, Any]:
    """Sum and count, by an aggregate of one's own."""
    return Aggregate((0, 0), _plus, _minus, is_zero=lambda state: state == (0, 0), of=of)


def _plus(state: State, value: int) -> State:
    return state[0] + value, state[1] + 1


def _minus(state: State, value: int) -> State:
    return state[0] - value, state[1] - 1


FOLDS: Mapping[str, Callable[..., Any]] = {
    "Count": lambda of: Count(),
    "Sum": Sum,
    "Avg": Avg,
    "Min": Min,
    "Max": Max,
    "CountDistinct": CountDistinct,
    "Collect": Collect,
    "Own": own,
    "Monoid": lambda of: Monoid(0, math.gcd, of=of),
}


class Build:
    """Makes relations over tables; equal parts are one relation if `shares`.

    `known` gives relations that take the place of a part: those of views that are there.
    """

    def __init__(self, names: Mapping[str, Any], tables: Sequence[Any], *, shares: bool) -> None:
        self._names = names
        self._tables = tables
        self._shares = shares
        self._made: dict[int, Any] = {}
        self.known: dict[int, Any] = {}

    def relation(self, node: Node, inside: Inside | None = None) -> Any:
        if node.number in self.known:
            return self.known[node.number]
        found = self._made.get(node.number) if self._shares else None
        if found is None:
            found = self._relation(node, inside or {})
            if not node.free:
                self._made[node.number] = found
        return found

    def _relation(self, node: Node, inside: Inside) -> Any:
        match node.op:
            case "table":
                return self._tables[node.more]
            case "recursive":
                return inside[node.more]
            case "fixpoint" | "best" | "iterate" | "each":
                return getattr(self, f"_{node.op}")(node, inside)
        source, *others = (self.relation(each, inside) for each in node.inputs)
        match node.op:
            case "where" | "select" | "select_many" | "unnest":
                return getattr(source, node.op)(self._names[node.calls["of"]])
            case "equals":
                field, place = node.more
                return source.where(**{field: self._names["POOL"][place]})
            case "distinct":
                return source.distinct()
            case "group":
                return self._group(node, source)
            case "reduce":
                groups = source.group_by(self._names[node.calls["key"]])
                return groups.reduce(REDUCERS[node.more])
            case "top":
                keys, count, how = node.more
                groups = source.group_by(self._names[node.calls["key"]])
                by = [*map(self._key, keys)]
                return groups.top(count, by) if how == "top" else getattr(groups, how)(by)
            case "order":
                return self._order(node, source)
            case "join" | "semi_join" | "anti_join":
                return getattr(source, node.op)(*others, **self._condition(node))
            case "outer":
                return getattr(source, f"{node.more}_join")(*others, **self._condition(node))
        return getattr(source, node.op)(*others)

    def _condition(self, node: Node) -> dict[str, Any]:
        return {part: self._names[name] for part, name in node.calls.items()}

    def _group(self, node: Node, source: Any) -> Any:
        groups = source.group_by(self._names[node.calls["key"]]) if node.calls else source
        if node.more[0].column is None:
            return groups.aggregate(*map(self._fold, node.more))
        named = {fold.column: self._fold(fold) for fold in node.more}
        return groups.aggregate(**named, as_=CLASSES.get(str(node.row)))

    def _fold(self, fold: Fold) -> Any:
        of = None if fold.of is None else self._names[fold.of]
        return FOLDS[fold.name](of, **({"skip_none": True} if fold.skip_none else {}))

    def _order(self, node: Node, source: Any) -> Any:
        keys, limit, offset = node.more
        ordered = source.order_by(*map(self._key, keys))
        return ordered if limit is None else ordered.limit(limit, offset)

    def _key(self, key: Key) -> Any:
        direction: Any = desc if key.descending else asc
        return direction(self._names[key.of], nulls=key.nulls)

    def _fixpoint(self, node: Node, inside: Inside) -> Any:
        level, which = node.more
        if len(node.inputs) == 1:
            return fixpoint(lambda r: self.relation(node.inputs[0], {**inside, (level, 0): r}))
        return fixpoint(
            lambda r, s: tuple(
                self.relation(body, {**inside, (level, 0): r, (level, 1): s})
                for body in node.inputs
            )
        )[which]

    def _best(self, node: Node, inside: Inside) -> Any:
        level, largest = node.more
        value, by = self._names[node.calls["value"]], self._names[node.calls["by"]]
        return fixpoint(
            lambda r: self.relation(node.inputs[0], {**inside, (level, 0): r}),
            keep=(Max if largest else Min)(value),
            by=by,
        )

    def _each(self, node: Node, inside: Inside) -> Any:
        source, body = node.inputs
        groups = self.relation(source, inside).group_by(self._names[node.calls["key"]])
        return groups.each(lambda g: self.relation(body, {**inside, node.more: g}))

    def _iterate(self, node: Node, inside: Inside) -> Any:
        start, body = node.inputs
        level, times = node.more
        return iterate(
            lambda r: self.relation(body, {**inside, (level, 0): r}),
            self.relation(start, inside),
            times=times,
        )
