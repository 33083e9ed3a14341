"""Aggregation of a single row, which most changes are: its group is replaced, and not remembered.

    for row, weight in delta:
        ...                                 the chain below, in terms of the row
        group = get(key)
        count = group[1] + weight           Count
        total = group[2] + value * weight   Sum, while it is an integer
        groups[key] = [..., count, total, new]
        return [(old, -1), (new, 1)]

State:  the groups of the plain operator.
Cost:   O(1); half of what the loop over many rows takes for one.
"""

from __future__ import annotations

from typing import Any

from reactive.codegen.body import Body, Plan
from reactive.operators.folds import AvgFold, CountFold, SumFold, ValuesFold
from reactive.operators.generated.grouped import Grouping


class GroupingOfOne(Grouping):
    """Writes what an aggregate does with the only row of a delta; first all that may raise."""

    @staticmethod
    def fits(todo: Plan, folds: list[Any]) -> bool:
        """Whether a row makes one row at most, and all folds have a state that can be replaced."""
        return not todo.makes_several and not any(isinstance(fold, ValuesFold) for fold in folds)

    def prologue(self) -> list[str]:
        return []

    def epilogue(self) -> list[str]:
        return ["    return ()"]

    def write(self, body: Body, weight: str) -> None:
        names = self._values(body)
        key = self._key_name(body)
        body.line(f"group = groups.get({key})" if self.is_keyed else f"group = groups[{key}]")
        body.line(f"before[{key}] = group")
        if self.is_keyed:
            body.line(f"if group is None: group = {self._new()}")
        states = []
        for place, ((fold, _), value) in enumerate(zip(self._folds, names, strict=True), 1):
            if fold.skip_none:
                body.line(f"if {value} is None: state_{place} = group[{place}]")
                body.line("else:")
            body.indent += fold.skip_none
            states.append(self._changed(body, place, fold, value, weight))
            body.indent -= fold.skip_none
        body.line(f"size = group[0] + {weight}")
        body.line("old = group[-1]")
        body.line(f"new = {self._shown(states, key, 'size')}")
        body.line("if old == new: new = old")
        self._replace(body, key, f"[size, {', '.join(states)}, new]")
        row = "{0}[0]" if self.is_bare else "{0}"
        old, new = row.format("old"), row.format("new")
        body.line("if new is old: return ()")
        if self.is_keyed:  # the one group without a key is there from the beginning
            body.line(f"if old is None: return [({new}, 1)]")
            body.line(f"if new is None: return [({old}, -1)]")
        body.line(f"return [({old}, -1), ({new}, 1)]")

    def _changed(self, body: Body, place: int, fold: Any, value: str | None, weight: str) -> str:
        """The variable that holds the state of a fold with the row."""
        old, new = f"group[{place}]", f"state_{place}"
        match fold:
            case CountFold():
                body.line(f"{new} = {old} + {weight}")
            case SumFold():
                body.line(f"{new} = {old}")
                body.line(f"if {new}.__class__ is int and {value}.__class__ is int:")
                body.line(f"    {new} += {value} * {weight}")
                body.line("else:")
                kept = f"{new} if {new}.__class__ is int else copied({new})"
                body.line(f"    {new} = add_to_sum({kept}, {value}, {weight})")
            case AvgFold():
                body.line(f"{new} = add_to_avg(copied({old}), {value}, {weight})")
            case _:
                raise TypeError(f"{type(fold).__name__} has no state that can be replaced")
        return new

    def _replace(self, body: Body, key: str, group: str) -> None:
        if not self.is_keyed:
            body.line(f"groups[{key}] = {group}")
            return
        if self._keeps_debts:
            body.line(f"kept = {group}")
            body.line(f"if size or not is_empty(kept): groups[{key}] = kept")
        else:
            body.line(f"if size: groups[{key}] = {group}")
        body.line(f"else: groups.pop({key}, None)")
