"""What takes the rows of a loop, or pairs, as sums by key: what a join keeps of a side.

    for row, weight in delta:
        ...                                     the chain below, tests, the key
        changed[key] = (weight, value * weight)     or added to what is there

Of a single row the sums themselves are changed.

State:  the sums of `operators/sums_by.py`.
Cost:   O(|d|).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from optimizer.expr import Expr
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.join_key import KEYS, matching_key
from reactive.engine.codegen.running_sums import RUNNING_SUMS, text_plus, text_times, write_plus
from reactive.engine.collections.zset import Batch
from reactive.engine.operators.accumulators import SumAccumulator
from reactive.engine.operators.loops import states
from reactive.engine.operators.loops.column_sums import Changed, column_sums
from reactive.engine.operators.loops.factored import Term


class Summing:
    """Takes rows or pairs as sums by key, and by a part of the group."""

    result = "changed"
    is_of_batch = False

    def __init__(
        self,
        key: Sequence[Expr],
        groups: Sequence[Expr],
        values: Sequence[Term],
        pipeline: RowPipeline,
        *,
        is_written: bool,
    ) -> None:
        self._key = list(key)
        self._groups = list(groups)
        self._values = list(values)
        self._pipeline = pipeline
        self._is_written = is_written
        self.bound: dict[str, Any] = {**KEYS, **RUNNING_SUMS}

    def exprs(self) -> list[Expr]:
        return [*self._key, *self._groups, *(f for term in self._values for f in term.factors)]

    def prologue(self) -> list[str]:
        return ["    changed = {}", "    get = changed.get"]

    def epilogue(self) -> list[str]:
        return []

    def over_columns(self) -> Callable[[Batch], Changed | None] | None:
        """The same, of many rows over columns."""
        if len(self._key) != 1 or self._groups:
            return None
        values = [factor for term in self._values for factor in term.factors]
        if len(values) > len(self._values):
            return None
        sums = column_sums(self._pipeline, self._key, values)
        return None if sums is None else sums.of

    def write(self, emitter: Emitter, weight: str) -> None:
        key = self._write_key(emitter)
        terms = [term.write(emitter, weight) for term in self._values]
        if self._groups:
            key = emitter.variable("key", self._with_part(emitter, key))
        emitter.line(f"state = get({key})")
        emitter.line("if state is None:")
        new = [text_times(*term) for term in terms]
        emitter.line(f"    changed[{key}] = ({', '.join([weight, *new])},)")
        emitter.line("else:")
        more = [text_plus(f"state[{place}]", *term) for place, term in enumerate(terms, 1)]
        emitter.line(f"    changed[{key}] = ({', '.join([f'state[0] + {weight}', *more])},)")

    def _with_part(self, emitter: Emitter, key: str) -> str:
        """The text of a key and the part of the group."""
        parts = [emitter.canonical(part) for part in self._groups]
        return f"({key}, {parts[0] if len(parts) == 1 else _tuple(parts)})"

    def _write_key(self, emitter: Emitter) -> str:
        """The lines that leave out what matches nothing, and the text of the key."""
        return matching_key(emitter, self._key, self._pipeline.shapes, is_written=self._is_written)


class SummingInLists(Summing):
    """Takes rows without weights as lists of values by key, of which all sums are made together."""

    is_of_batch = True

    def prologue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
        key = self._write_key(emitter)
        factors = [factor for (factor,) in (term.factors for term in self._values)]
        values = list(map(emitter.use, factors))
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        if self._groups:
            key = self._with_part(emitter, key)
        emitter.line(f"changed[{key}].append({value})")


def of_lists(loop: Callable[..., dict[Any, list[Any]]], width: int) -> Callable[[Batch], Any]:
    """What gives the sums of a batch by such a loop; None where rows have another weight than 1."""

    def sums(delta: Batch) -> Changed | None:
        if delta.weight != 1:
            return None
        found = loop(defaultdict(list), delta.rows)
        lists = list(found.values())
        columns = (
            [lists]
            if width == 1
            else [
                [list(map(itemgetter(place), values)) for values in lists] for place in range(width)
            ]
        )
        made = [states.Gathered(column).states(SumAccumulator()) for column in columns]
        return dict(zip(found, zip(map(len, lists), *made, strict=True), strict=True))

    return sums


class SummingOfOne(Summing):
    """Adds a single row to the sums; all that may raise is done before."""

    result = "()"

    def prologue(self) -> list[str]:
        return []

    def write(self, emitter: Emitter, weight: str) -> None:
        key = self._write_key(emitter)
        key = key if key.isidentifier() else emitter.variable("key", key)
        terms = [term.write(emitter, weight) for term in self._values]
        more = [emitter.variable("more", text_times(*term)) for term in terms]
        emitter.line(f"new = ({', '.join([weight, *more])},)")
        emitter.line(f"old = sums.get({key})")
        emitter.line("if old is None:")
        emitter.line(f"    sums[{key}] = new")
        emitter.line(f"    return (({key}, new),)")
        count = emitter.variable("count", f"old[0] + {weight}")
        parts = [count]
        for place, add in enumerate(more, 1):
            part = emitter.variable("kept", f"old[{place}]")
            for line in write_plus(part, add, "1", is_own=False):
                emitter.line(line)
            parts.append(part)
        emitter.line(f"if {' or '.join(parts)}: sums[{key}] = ({', '.join(parts)},)")
        emitter.line(f"else: del sums[{key}]")
        emitter.line(f"return (({key}, new),)")


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)})"
