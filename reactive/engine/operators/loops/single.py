"""Aggregation of a single row, which most changes are: its group is replaced, and not remembered.

    for row, weight in delta:
        ...                                 the chain below, in terms of the row
        group = get(key)
        count = group[1] + weight           Count
        total = group[2] + value * weight   Sum (`codegen/running_sums.py`)
    values = group[3].plus(value, weight)       Collect
        groups[key] = [..., count, total, new]
        return [(old, -1), (new, 1)]

State:  the groups of the plain operator.
Cost:   O(1); half of what the loop over many rows takes for one.
"""

from __future__ import annotations

from typing import Any

from reactive.engine.codegen.emitter import Emitter
from reactive.engine.operators.accumulators import (
    AvgAccumulator,
    CollectAccumulator,
    CountAccumulator,
    SumAccumulator,
    ValuesAccumulator,
)
from reactive.engine.operators.loops.grouped import Grouping


class GroupingOfOne(Grouping):
    """Writes what an aggregate does with the only row of a delta, of which a chain makes one row
    at most; first all that may raise."""

    result = "()"

    @staticmethod
    def fits(accumulators: list[Any]) -> bool:
        """Whether all accumulators have a state that can be replaced."""
        return not any(
            isinstance(each, ValuesAccumulator) and not isinstance(each, CollectAccumulator)
            for each in accumulators
        )

    def prologue(self) -> list[str]:
        return []

    def epilogue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
        names = self._values(emitter)
        key = self._key_name(emitter)
        emitter.line(f"group = groups.get({key})" if self.is_keyed else f"group = groups[{key}]")
        emitter.line(f"before[{key}] = group")
        if self.is_keyed:
            emitter.line(f"if group is None: group = {self._new()}")
        states = []
        for place, ((accumulator, _), value) in enumerate(
            zip(self.accumulators, names, strict=True), 1
        ):
            if accumulator.skip_none:
                emitter.line(f"if {value} is None: state_{place} = group[{place}]")
                emitter.line("else:")
            emitter.indent += accumulator.skip_none
            states.append(self._changed(emitter, place, accumulator, value, weight))
            emitter.indent -= accumulator.skip_none
        emitter.line(f"size = group[0] + {weight}")
        emitter.line("old = group[-1]")
        emitter.line(f"new = {self._shown(states, key, 'size')}")
        emitter.line("if old == new: new = old")
        self._replace(emitter, key, f"[size, {', '.join(states)}, new]")
        row = "{0}[0]" if self.is_bare else "{0}"
        old, new = row.format("old"), row.format("new")
        emitter.line("if new is old: return ()")
        if self.is_keyed:  # the one group without a key is there from the beginning
            emitter.line(f"if old is None: return [({new}, 1)]")
            emitter.line(f"if new is None: return [({old}, -1)]")
        emitter.line(f"return [({old}, -1), ({new}, 1)]")

    def _changed(
        self, emitter: Emitter, place: int, accumulator: Any, value: str | None, weight: str
    ) -> str:
        """The variable that holds the state of an accumulator with the row."""
        old, new = f"group[{place}]", f"state_{place}"
        match accumulator:
            case CountAccumulator():
                emitter.line(f"{new} = {old} + {weight}")
            case SumAccumulator():
                emitter.line(f"{new} = {old}")
                self._plus(emitter, new, value, weight, is_own=False)
            case AvgAccumulator():
                emitter.line(f"total, count = {old}")
                self._plus(emitter, "total", value, weight, is_own=False)
                emitter.line(f"{new} = (total, count + {weight})")
            case CollectAccumulator():
                emitter.line(f"{new} = {old}.plus({value}, {weight})")
            case _:
                raise TypeError(f"{type(accumulator).__name__} has no state that can be replaced")
        return new

    def _replace(self, emitter: Emitter, key: str, group: str) -> None:
        if not self.is_keyed:
            emitter.line(f"groups[{key}] = {group}")
            return
        if self._keeps_debts:
            emitter.line(f"kept = {group}")
            emitter.line(f"if size or not is_empty(kept): groups[{key}] = kept")
        else:
            emitter.line(f"if size: groups[{key}] = {group}")
        emitter.line(f"else: groups.pop({key}, None)")
