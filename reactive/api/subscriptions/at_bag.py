"""The changes of a bag inside of one row: what a subscription with a path hears.

(7, "orders", lambda o: o.id == 3, "lines")    of the row with key 7, of its order 3, the lines

A row inside is told by what it is, or by a callable: what changes inside of it makes it another.

Cost:   of each level, the difference of two bags, if the row at its beginning changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from optimizer.errors import PlanError
from optimizer.expressions.knowledge import Shapes
from optimizer.kinds.fields import is_record, members
from optimizer.kinds.kind import class_of, hints_of, kind_of, name_of
from reactive.engine.collections.bag import Bag, changed_values
from reactive.engine.collections.inner_changes import fields_of
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.dataflow.delta import Delta

NOTHING: Bag[Any] = Bag()
Path = tuple[Any, ...]


def heard(
    of: Shapes, callback: Callable[[Delta[Any]], object], path: Path | None
) -> Callable[[Delta[Any]], object]:
    """What is called in the place of a callback that hears what is in the bag at a path.

    Raises
    ------
    PlanError: it is not `(key, field, row, field, ...)`, or the rows have no such field.
    """
    if path is None:
        return callback
    _check(of, path)

    @wraps(callback)
    def inside(delta: Delta[Any]) -> object:
        inner = at_bag(delta, path)
        return None if inner is None else callback(inner)

    return inside


def at_bag(delta: Delta[Any], path: Path) -> Delta[Any] | None:
    """The change of the bag at a path; None if there is none. Without its row it has no values."""
    pairs: Sequence[Pair] = delta.items()
    key = delta._key
    for wanted, field in zip(path[::2], path[1::2], strict=True):
        found = [pair for pair in pairs if _is_meant(pair[0], wanted, key)]
        old = next((_bag(row, field) for row, weight in found if weight < 0), NOTHING)
        new = next((_bag(row, field) for row, weight in found if weight > 0), NOTHING)
        pairs, key = changed_values(old, new), None
    if not pairs and not delta.is_snapshot:
        return None
    return Delta(delta.version, tuple(pairs), is_snapshot=delta.is_snapshot)


def _is_meant(row: Row, wanted: Any, key: Callable[[Row], Any] | None) -> bool:
    if callable(wanted):
        return bool(wanted(row))
    return bool((row if key is None else key(row)) == wanted)


def _bag(row: Row, field: Any) -> Bag[Any]:
    found = dict(fields_of(row)).get(field)
    if isinstance(found, Bag):
        return found
    raise PlanError(
        f"path: there is no Bag {field!r} in {row!r:.200}\n"
        f"  its fields are {', '.join(str(name) for name, _ in fields_of(row))}"
    )


def _check(of: Shapes, path: Any) -> None:
    fields = path[1::2] if isinstance(path, tuple) else ()
    if not fields or len(path) % 2 or not all(isinstance(field, str | int) for field in fields):
        raise PlanError(
            f"path={path!r:.80} does not end with the field of a bag\n"
            '  path=(key, "orders") is the bag of the row with that key; below it,'
            ' path=(key, "orders", lambda o: o.id == 7, "lines")'
        )
    kind = of[0] if len(of) == 1 else None
    if is_record(kind) and fields[0] not in members(kind):
        raise PlanError(
            f"path: there is no field {fields[0]!r}\n  there is {', '.join(members(kind))}"
        )
    declared = kind_of(hints_of(kind).get(fields[0], Any) if isinstance(kind, type) else Any)
    python = class_of(declared)
    if python is not None and not issubclass(Bag, python):
        remedy = "declare it as Bag[...] in the class of the rows"
        if python in (list, dict, set):
            remedy = f"subscribe to a view of its values: .unnest(lambda row: row.{fields[0]})"
        raise PlanError(
            f"path: {fields[0]!r} is declared as {name_of(declared)}, not as a Bag\n  {remedy}"
        )
