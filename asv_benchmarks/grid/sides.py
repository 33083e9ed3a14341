"""The sides of a cell: its query on the engine, and its twin, both made from their texts."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

import reactive
from asv_benchmarks.engine import Engine
from asv_benchmarks.grid.cell import LINKS, Cell
from asv_benchmarks.grid.query import query_text
from asv_benchmarks.grid.rows import Data, passes
from asv_benchmarks.grid.twin import twin_text
from asv_benchmarks.workload import Listener, Result, TableDelta, TableOf, Verb
from reactive import Relation

CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Asked:
    """A cell's query, made from its text, for `Engine`."""

    name: str
    tables: tuple[TableOf, ...]
    query: Callable[..., Relation[*tuple[Any, ...]]]


class Twin:
    """A side made from the text of a cell's twin."""

    def __init__(self, cell: Cell, listener: Listener) -> None:
        make = _made(twin_text(cell), "twin", {"passes": passes})
        self._verbs, self._batch, self._result = make(listener.change, listener.changes)

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return self._verbs  # type: ignore[no-any-return]

    def batch(self, *deltas: TableDelta) -> None:
        self._batch(deltas)

    def result(self) -> Result:
        return self._result()  # type: ignore[no-any-return]


def engine(cell: Cell, data: Data, listener: Listener) -> Engine:
    """Return the engine's side, empty."""
    return Engine(asked(cell, data), listener)


def asked(cell: Cell, data: Data) -> Asked:
    """Return the query of a cell, over tables of its rows; a referenced table is keyed."""
    types = [tuple if cell.rows == "tuple" else each for each in data.classes]
    keys: list[Any] = [None]
    for table in range(1, cell.tables):
        key = cell.field(table, LINKS[table - 1][1])
        keys.append(None if table == 1 and cell.partners > 1 else key)
    names = {"passes": passes, **vars(reactive)}
    return Asked(
        name="cell",
        tables=tuple(TableOf(row, _key(key)) for row, key in zip(types, keys, strict=True)),
        query=_made(query_text(cell), "query", names),
    )


def _key(text: str | None) -> Any:
    """Return a field by name, or a function that reads it by place."""
    if text is None:
        return None
    return text.partition(".")[2] or _made(f"def key({text[0]}):\n    return {text}\n", "key", {})


def _made(text: str, name: str, names: Mapping[str, object]) -> Any:
    """Execute a text, registering its lines for tracebacks, and return the object of a name."""
    file = f"<{name} {hash(text):x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = dict(names)
    exec(compile(text, file, "exec"), space)
    return space[name]


def equal(one: Result, other: Result) -> bool:
    """Return True if results are equal up to the rounding of floats, which twins add plainly."""
    if one == other:
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        if len(one) == len(other) == 1:
            return _close(*one, *other)
        by_key = {_rest(row): row for row in other}
        return len(one) == len(other) and all(
            _rest(row) in by_key and _close(row, by_key[_rest(row)]) for row in one
        )
    return False


def _rest(row: Any) -> Any:
    """Return the key of a row, and its other values that are no floats."""
    return (row[0], *(part for part in row[1:] if not isinstance(part, float)))


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(one == other)
