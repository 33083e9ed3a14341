"""The keys of a delta for an index, with the chain below it, as one loop.

    for row, weight in delta:
        ...                             the chain below, the tests of the side
        append((key, (row, weight)))

A key found in a predicate must not raise: when the loop does, the plain key is asked row by row.

State:  none.
Cost:   O(|dL|).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from optimizer.expr import Expr, Lifted
from optimizer.expressions.knowledge import hashable
from optimizer.plans.early import Step
from optimizer.traverse import read_functions
from reactive.codegen.body import Body, Chain, Plan, row_names
from reactive.codegen.functions import Values, build
from reactive.collections.index import NO_MATCH, KeyedBatch, KeyedPair, match_key
from reactive.collections.zset import Batch, Pairs, consolidate, is_mixed
from reactive.operators.key_by import KeyBy
from reactive.runtime.interrupts import reraise_asynchronous


class KeyLoop:
    """A `KeyBy` that runs the loop; when it raises, the plain one over the plain chain."""

    gives_keys: ClassVar[bool] = True
    __slots__ = (
        *("_batch", "_code", "_identity", "_loop", "_plain", "_rows"),
        *("source", "tells_rejected", "touched"),
    )

    def __init__(
        self, code: KeyCode, plain: KeyBy, rows: Callable[[Pairs], Pairs], *, identity: bool
    ) -> None:
        self._code = code
        self._loop, self.source = code.loop(batch=False)
        self._batch: Callable[..., Any] | None = None
        self._plain = plain
        self._rows = rows
        self._identity = identity
        self.tells_rejected = False
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[KeyedPair]:
        self.touched += len(delta)
        keyed: Sequence[KeyedPair] | None = None
        if not self.tells_rejected:
            try:
                if type(delta) is Batch:
                    keyed = self._of_batch(delta)
                else:
                    loop = self._loop
                    keyed = loop(delta)
            except Exception as error:  # the plain key raises it, or sees that it does not count
                reraise_asynchronous(error)
                keyed = None
        if keyed is None:
            return self._carefully(delta)
        if self._identity or len(keyed) < 2 or not is_mixed(delta):
            return keyed
        return _net(keyed)

    def _of_batch(self, delta: Batch) -> KeyedBatch:
        if self._batch is None:
            self._batch, _ = self._code.loop(batch=True)
        keys, rows = self._batch(delta.rows)
        return KeyedBatch(keys, rows, delta.weight)

    def _carefully(self, delta: Pairs) -> list[KeyedPair]:
        self._plain.tells_rejected = self.tells_rejected
        return self._plain.step(self._rows(delta))


class KeyCode:
    """What the loop does, as far as it does not depend on how its rows come."""

    def __init__(
        self,
        chain: Chain,
        todo: Plan,
        written: Lifted | None,
        steps: Sequence[Step],
    ) -> None:
        called = read_functions(*chain)
        called += [f for f in (written, *(step.function for step in steps)) if f is not None]
        self._names = row_names(called, todo.bindings)
        self._key = key_parts(todo, written, steps)
        self._todo = todo
        self._is_written = written is not None

    def loop(self, *, batch: bool) -> tuple[Callable[..., Any], str]:
        """The function, of a delta or of the rows of a batch, and its text."""
        todo, values = self._todo, Values()
        body = Body(values, self._names, todo.shapes, 2)
        body.begin(todo.acts, [*self._key, *([] if todo.is_input else [todo.value()])])
        body.write(todo.acts)
        key = write_key(body, self._key, todo, is_written=self._is_written)
        row = "row" if todo.is_input else body.canonical(todo.value())
        values.bind({"NO_MATCH": NO_MATCH, "match_key": match_key})
        if batch:
            body.line(f"add_key({key})")
            body.line(f"add_row({row})")
            text = _function(OF_ROWS, body)
        else:
            pair = "pair" if todo.is_input else f"({row}, weight)"
            body.line(f"append(({key}, {pair}))")
            text = _function(OF_PAIRS, body)
        return build("keyed", text, values), text


OF_PAIRS = """def keyed(delta):
    out = []
    append = out.append
    for pair in delta:
        row, weight = pair
{}
    return out
"""
OF_ROWS = """def keyed(rows):
    keys, kept = [], []
    add_key, add_row = keys.append, kept.append
    for row in rows:
{}
    return keys, kept
"""


def _function(form: str, body: Body) -> str:
    return form.format("\n".join(body.lines))


def key_parts(todo: Plan, written: Lifted | None, steps: Sequence[Step]) -> list[Expr]:
    """The parts of the key; the tests of the side become tests of the loop, in their order."""
    parts: list[Expr] = []
    if written is not None:
        parts.append(todo.take(written.body))
    for step in steps:
        if not step.is_key:
            todo.test(step.function.body)
            continue
        parts.append(todo.take(step.function.body))
    return parts


def write_key(body: Body, key: list[Expr], todo: Plan, *, is_written: bool) -> str:
    """The text of the key, after the lines that find out whether it matches anything."""
    if not key:
        return "()"
    names = []
    for part in key:
        text = body.use(part)
        name = text if text.isidentifier() else body.variable("key", text)
        names.append(name)
        if not is_written and not hashable(part, todo.shapes):
            body.line(f"hash({name})")
    if is_written:
        (name,) = names
        plain = f"{name}.__class__ is int or {name}.__class__ is str"  # as `match_key` begins
        return f"{name} if {plain} else match_key({name})"
    nan = " or ".join(f"{name} != {name}" for name in names)
    whole = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return f"NO_MATCH if {nan} else {whole}"


def _net(keyed: Sequence[KeyedPair]) -> Sequence[KeyedPair]:
    """Without the rows that come and go."""
    if len(keyed) < 2:
        return keyed
    keys = {id(pair): key for key, pair in keyed}
    net = consolidate([pair for _, pair in keyed])
    if len(net) == len(keyed):
        return keyed
    by_row = {pair[0]: keys[id(pair)] for _, pair in keyed}
    return [(by_row[pair[0]], pair) for pair in net]
