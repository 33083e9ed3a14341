"""The key of a row in generated code: what a join looks up, or puts into an index.

A key that is written by the user is compared as it is; parts of keys that were found in a predicate
have the meaning of `==`. What equals nothing, as NaN, is `NO_MATCH`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer.expr import Expr, Lifted
from optimizer.expressions.knowledge import Shapes, hashable
from optimizer.plans.side_conditions import SideTerm
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.collections.index import NO_MATCH, match_key

KEYS: dict[str, Any] = {"NO_MATCH": NO_MATCH, "match_key": match_key}
"""What these lines call by name."""


def key_parts(
    pipeline: RowPipeline, written: Lifted | None, steps: Sequence[SideTerm]
) -> list[Expr]:
    """The parts of the key; the tests of the side become tests of the loop, in their order."""
    parts: list[Expr] = []
    if written is not None:
        parts.append(pipeline.take(written.body))
    for step in steps:
        if not step.is_key:
            pipeline.test(step.function.body)
            continue
        parts.append(pipeline.take(step.function.body))
    return parts


def key_or_no_match(body: Emitter, key: Sequence[Expr], shapes: Shapes, *, is_written: bool) -> str:
    """The text of the key of a row that is kept in any case."""
    if not key:
        return "()"
    names = _names(body, key)
    if is_written:
        (name,) = names
        plain = f"{name}.__class__ is int or {name}.__class__ is str"  # as `match_key` begins
        return f"{name} if {plain} else match_key({name})"
    for name, part in zip(names, key, strict=True):
        if not hashable(part, shapes):
            body.line(f"hash({name})")
    nan = " or ".join(f"{name} != {name}" for name in names)
    return f"NO_MATCH if {nan} else {whole(names)}"


def matching_key(body: Emitter, key: Sequence[Expr], shapes: Shapes, *, is_written: bool) -> str:
    """The text of the key, after lines that leave out a row whose key matches nothing."""
    if is_written:
        text = key_or_no_match(body, key, shapes, is_written=True)
        name = body.variable("key", text)
        body.line(f"if {name} is NO_MATCH: continue")
        return name
    names = _names(body, key)
    for name in names:
        body.line(f"if {name} != {name}: continue")
    return whole(names)


def _names(body: Emitter, key: Sequence[Expr]) -> list[str]:
    names = []
    for part in key:
        text = body.use(part)
        names.append(text if text.isidentifier() else body.variable("key", text))
    return names


def whole(names: Sequence[str]) -> str:
    """The text of a key of some parts."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"
