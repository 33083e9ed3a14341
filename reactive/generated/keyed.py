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

from optimizer import plan
from optimizer.expr import Expr, Lifted
from optimizer.knowledge import hashable
from optimizer.traverse import functions
from reactive.codegen import Values, build
from reactive.generated.body import Body, Chain, Plan, row_names
from reactive.index import NO_MATCH, KeyedPair, match_key
from reactive.operators.key_by import KeyBy
from reactive.zset import Pairs, consolidate, is_mixed

Loop = Callable[[Pairs], list[KeyedPair]]


class KeyLoop:
    """A `KeyBy` that runs the loop; when it raises, the plain one over the plain chain."""

    __slots__ = ("_identity", "_loop", "_plain", "_rows", "source", "tells_rejected", "touched")

    def __init__(
        self,
        loop: Loop,
        source: str,
        plain: KeyBy,
        rows: Callable[[Pairs], Pairs],
        *,
        identity: bool,
    ) -> None:
        self._loop = loop
        self._plain = plain
        self._rows = rows
        self._identity = identity
        self.source = source
        self.tells_rejected = False
        self.touched = 0

    def step(self, delta: Pairs) -> list[KeyedPair]:
        self.touched += len(delta)
        if not self.tells_rejected:
            try:
                keyed = self._loop(delta)
            except Exception:
                return self._carefully(delta)
            return keyed if self._identity or not is_mixed(delta) else _net(keyed)
        return self._carefully(delta)

    def _carefully(self, delta: Pairs) -> list[KeyedPair]:
        self._plain.tells_rejected = self.tells_rejected
        return self._plain.step(self._rows(delta))


def key_loop(
    chain: Chain,
    bindings: int,
    todo: Plan,
    written: Lifted | None,
    steps: Sequence[plan.Step],
) -> tuple[Loop, str]:
    """The function, and its text."""
    values = Values()
    called = [f for node in chain for f in functions(node) if isinstance(f, Lifted)]
    called += [f for f in (written, *(step.function for step in steps)) if f is not None]
    names = row_names(called, bindings)
    key = _key(todo, written, steps)
    body = Body(values, names, todo.shapes, 2)
    body.expect([*(act.expr for act in todo.acts), *key])
    if not todo.is_input:
        body.expect([todo.value()])
    if bindings > 1:
        body.line(f"{', '.join(names)} = row")
    body.write(todo.acts)
    shown = _write_key(body, key, todo, is_written=written is not None)
    pair = "pair" if todo.is_input else f"({body.canonical(todo.value())}, weight)"
    body.line(f"append(({shown}, {pair}))")
    head = "    for pair in delta:\n        row, weight = pair"
    text = "\n".join(
        ["def keyed(delta):", "    out = []", "    append = out.append"]
        + [head, *body.lines, "    return out", ""]
    )
    values.by_name |= {"NO_MATCH": NO_MATCH, "match_key": match_key}
    return build("keyed", text, values), text


def _key(todo: Plan, written: Lifted | None, steps: Sequence[plan.Step]) -> list[Expr]:
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


def _write_key(body: Body, key: list[Expr], todo: Plan, *, is_written: bool) -> str:
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
        return f"match_key({names[0]})"
    nan = " or ".join(f"{name} != {name}" for name in names)
    whole = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return f"NO_MATCH if {nan} else {whole}"


def _net(keyed: list[KeyedPair]) -> list[KeyedPair]:
    """Without the rows that come and go."""
    if len(keyed) < 2:
        return keyed
    keys = {id(pair): key for key, pair in keyed}
    net = consolidate([pair for _, pair in keyed])
    if len(net) == len(keyed):
        return keyed
    by_row = {pair[0]: keys[id(pair)] for _, pair in keyed}
    return [(by_row[pair[0]], pair) for pair in net]
