"""The changes of the nested rows, or of a bag, inside one row: subscriptions with a path.

    (7, "orders", 3, "lines")                      nested rows: of the row with key 7 the orders, of
                                                   the order with key 3 the lines
    (7, "orders", lambda o: o.id == 3, "lines")    bags: of the row with key 7, of its order 3, the
                                                   lines

A row in a bag is identified by its value, which a change inside replaces, or by a callable.

Cost:   on each level, the difference of two nested values, if the outer row changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import itemgetter
from typing import Any

from optimizer.errors import PlanError
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.text import Level, Nesting
from optimizer.kinds.fields import is_record, members
from optimizer.kinds.kind import class_of, hints_of, kind_of, name_of
from reactive.engine.collections.bag import Bag, value_changes
from reactive.engine.collections.inner_changes import named_fields
from reactive.engine.collections.long_tuple import sequence_differences
from reactive.engine.collections.nested_edits import NestedKey, sequence_edits
from reactive.engine.collections.nested_edits import Path as EditPath
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.dataflow.delta import Delta

NOTHING: Bag[Any] = Bag()


def check_path(nesting: Nesting | Level, path: Any) -> EditPath:
    """Refuse a path that does not lead to nested rows.

    Raises
    ------
    PlanError: `path` is not `(key, name, ...)`, with names of nested bindings.
    """
    given = tuple(path) if isinstance(path, tuple | list) else (path,)
    level: Nesting | Level = nesting
    for name in given[1::2]:
        names = [each.name for each in level.levels]
        if name not in names:
            raise PlanError(
                f"path: there is no {name!r} inside\n  there is {', '.join(names) or 'nothing'}"
            )
        level = level.levels[names.index(name)]
    if not given or len(given) % 2:
        raise PlanError(
            f"path={path!r:.80} does not end with the name of a binding\n"
            '  path=(key, "orders") is the orders of the row with that key'
        )
    return given


def has_copies(nesting: Nesting) -> bool:
    """Return True if rows may have copies, because no key of a table identifies them."""
    return isinstance(nesting.key, itemgetter)


def hear_nested(
    nesting: Nesting, callback: Callable[[Delta[Any]], object], path: EditPath, copies: int
) -> Callable[[Delta[Any]], object]:
    """Return a callback for the outer deltas that passes the inner changes at a path to `callback`.

    copies: the number of rows with the first key of the path, if there may be several.
    """
    count = copies

    @wraps(callback)
    def inside(delta: Delta[Any]) -> object:
        nonlocal count
        before = 0 if delta.is_snapshot else count
        if has_copies(nesting):
            count = before + sum(w for row, w in delta if nesting.key(row) == path[0])
            inner = at_path(nesting, delta, path, (before > 0, count > 0))
        else:
            inner = at_path(nesting, delta, path)
        return None if inner is None else callback(inner)

    return inside


def at_path(
    nesting: Nesting | Level,
    delta: Delta[Any],
    path: EditPath,
    there: tuple[bool, bool] | None = None,
) -> Delta[Any] | None:
    """Return the change of the rows at a path, which is empty without its row; None if unchanged.

    there: whether the row of the first key existed before, and exists now, if it may have copies.
    """
    pairs: Sequence[Pair] = tuple(delta)
    level: Any = nesting
    old: Any = NOTHING
    new: Any = NOTHING
    for key, name in zip(path[::2], path[1::2], strict=True):
        rows = [(row, weight) for row, weight in pairs if level.key(row) == key]
        gone = next((row for row, weight in rows if weight < 0), None)
        came = next((row for row, weight in rows if weight > 0), None)
        if level is not nesting:
            there = _are_there(gone, came, old, new)
        if there is not None:  # a deleted or inserted copy leaves the other copies unchanged
            either = gone if came is None else came
            gone, came = _row_if(there[0], gone, either), _row_if(there[1], came, either)
        number = [each.name for each in level.levels].index(name)
        place, level = level.kind.roots + number, level.levels[number]
        empty: Any = () if level.is_sequence else NOTHING
        old = empty if gone is None else gone[place]
        new = empty if came is None else came[place]
        pairs = _between(level, old, new)
    if not pairs and not delta.is_snapshot:
        return None
    edits = sequence_edits(level, old, new, ()) if level.is_sequence else ()
    key_of = level.key if level.is_sequence else NestedKey(level)
    return Delta(delta.version, pairs, key_of, tuple(edits), is_snapshot=delta.is_snapshot)


def _are_there(gone: Any, came: Any, old: Any, new: Any) -> tuple[bool, bool]:
    """Return two truth values: a row was in `old`, and is in `new`.

    `gone` and `came` are the row before and after, None if it was not deleted or inserted. A
    row that came may have been there as another copy, and a row that went may still be.
    """
    was = gone is not None or (came is not None and old.count(came) > 0)
    return was, came is not None or (gone is not None and new.count(gone) > 0)


def _row_if(is_there: bool, row: Any, other: Any) -> Any:
    return (other if row is None else row) if is_there else None


def _between(level: Level, old: Any, new: Any) -> Sequence[Pair]:
    """Return the deleted and inserted rows between the nested values `old` and `new`."""
    if level.is_sequence:
        parts = sequence_differences(old, new)
        return consolidate(
            [(row, -1) for part in parts for row in part[1]]
            + [(row, 1) for part in parts for row in part[3]]
        )
    return tuple(new.difference(old).items())


Path = tuple[Any, ...]


def hear_bag(
    of: Shapes, callback: Callable[[Delta[Any]], object], path: Path | None
) -> Callable[[Delta[Any]], object]:
    """Return a callback for the outer deltas that passes the changes of a bag to `callback`.

    Raises
    ------
    PlanError: `path` is not `(key, field, row, field, ...)`, or the rows have no such field.
    """
    if path is None:
        return callback
    _check_path(of, path)

    @wraps(callback)
    def inside(delta: Delta[Any]) -> object:
        inner = at_bag(delta, path)
        return None if inner is None else callback(inner)

    return inside


def at_bag(delta: Delta[Any], path: Path) -> Delta[Any] | None:
    """Return the change of the bag at a path, which is empty without its row; None if unchanged."""
    pairs: Sequence[Pair] = delta.items()
    key = delta._key
    for wanted, field in zip(path[::2], path[1::2], strict=True):
        found = [pair for pair in pairs if _is_meant(pair[0], wanted, key)]
        old = next((_bag_of_field(row, field) for row, weight in found if weight < 0), NOTHING)
        new = next((_bag_of_field(row, field) for row, weight in found if weight > 0), NOTHING)
        pairs, key = value_changes(old, new), None
    if not pairs and not delta.is_snapshot:
        return None
    return Delta(delta.version, tuple(pairs), is_snapshot=delta.is_snapshot)


def _is_meant(row: Row, wanted: Any, key: Callable[[Row], Any] | None) -> bool:
    """Return True if a part of a path names the row: by a test, a key, or the row itself."""
    if callable(wanted):
        return bool(wanted(row))
    return bool((row if key is None else key(row)) == wanted)


def _bag_of_field(row: Row, field: Any) -> Bag[Any]:
    """Return the bag in a field of a row; raises `PlanError` if there is none."""
    found = dict(named_fields(row)).get(field)
    if isinstance(found, Bag):
        return found
    raise PlanError(
        f"path: there is no Bag {field!r} in {row!r:.200}\n"
        f"  its fields are {', '.join(str(name) for name, _ in named_fields(row))}"
    )


def _check_path(of: Shapes, path: Any) -> None:
    """Refuse a path that does not end with a field that can be a bag."""
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
