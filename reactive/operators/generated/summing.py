"""What takes the rows of a loop, or pairs, as sums by key: what a join keeps of a side.

    for row, weight in delta:
        ...                                     the chain below, tests, the key
        changed[key] = (weight, value * weight)     or added to what is there

Of a single row the sums themselves are changed.

State:  the sums of `operators/sums_by.py`.
Cost:   O(|d|).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer.expr import Expr
from reactive.codegen.body import Body, Plan
from reactive.collections.index import NO_MATCH, match_key
from reactive.operators.generated.factored import Term
from reactive.operators.generated.keyed import write_key
from reactive.operators.sums_by import copied, plus, plus_value, times


class Summing:
    """Takes rows or pairs as sums by key, and by a part of the group."""

    def __init__(
        self,
        key: Sequence[Expr],
        groups: Sequence[Expr],
        values: Sequence[Term],
        todo: Plan,
        *,
        is_written: bool,
    ) -> None:
        self._key = list(key)
        self._groups = list(groups)
        self._values = list(values)
        self._todo = todo
        self._is_written = is_written
        self.bound: dict[str, Any] = {"plus": plus, "plus_value": plus_value, "scaled": times}
        self.bound |= {"NO_MATCH": NO_MATCH, "match_key": match_key, "copied": copied}

    def exprs(self) -> list[Expr]:
        return [*self._key, *self._groups, *(f for term in self._values for f in term.factors)]

    def prologue(self) -> list[str]:
        return ["    changed = {}", "    get = changed.get"]

    def epilogue(self) -> list[str]:
        return ["    return changed"]

    def write(self, body: Body, weight: str) -> None:
        key = self._write_key(body)
        terms = [term.write(body, weight) for term in self._values]
        if self._groups:
            parts = [body.canonical(part) for part in self._groups]
            whole = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
            key = body.variable("key", f"({key}, {whole})")
        body.line(f"state = get({key})")
        body.line("if state is None:")
        new = [_first(name, often) for name, often, _ in terms]
        body.line(f"    changed[{key}] = ({', '.join([weight, *new])},)")
        body.line("else:")
        more = [_more(place, *term) for place, term in enumerate(terms, 1)]
        body.line(f"    changed[{key}] = ({', '.join([f'state[0] + {weight}', *more])},)")

    def _write_key(self, body: Body) -> str:
        """The lines that leave out what matches nothing, and the text of the key."""
        if self._is_written:
            key = body.variable(
                "key", write_key(body, self._key, self._todo, is_written=self._is_written)
            )
            body.line(f"if {key} is NO_MATCH: continue")
            return key
        names = [body.named(part) for part in self._key]
        for name in names:
            body.line(f"if {name} != {name}: continue")
        return names[0] if len(names) == 1 else f"({', '.join(names)})"


class SummingOfOne(Summing):
    """Adds a single row to the sums; all that may raise is done before."""

    def prologue(self) -> list[str]:
        return []

    def epilogue(self) -> list[str]:
        return ["    return ()"]

    def write(self, body: Body, weight: str) -> None:
        key = self._write_key(body)
        key = key if key.isidentifier() else body.variable("key", key)
        terms = [term.write(body, weight) for term in self._values]
        more = [body.variable("more", _first(name, often)) for name, often, _ in terms]
        body.line(f"new = ({', '.join([weight, *more])},)")
        body.line(f"old = sums.get({key})")
        body.line("if old is None:")
        body.line(f"    sums[{key}] = new")
        body.line(f"    return (({key}, new),)")
        count = body.variable("count", f"old[0] + {weight}")
        parts = [count]
        for place, add in enumerate(more, 1):
            part = body.variable("kept", f"old[{place}]")
            body.line(f"if {part}.__class__ is int and {add}.__class__ is int: {part} += {add}")
            body.line(f"else: {part} = plus(copied({part}), {add})")
            parts.append(part)
        body.line(f"if {' or '.join(parts)}: sums[{key}] = ({', '.join(parts)},)")
        body.line(f"else: del sums[{key}]")
        body.line(f"return (({key}, new),)")


def _first(name: str, often: str) -> str:
    """The sum of a value that comes so often."""
    return f"{name} * {often} if {name}.__class__ is int else scaled({name}, {often})"


def _more(place: int, name: str, often: str, is_sum: bool) -> str:
    """A sum, and a value or a sum of a side."""
    add = "plus" if is_sum else "plus_value"
    state = f"state[{place}]"
    are_int = f"{state}.__class__ is int and {name}.__class__ is int"
    return f"{state} + {name} * {often} if {are_int} else {add}({state}, {name}, {often})"
