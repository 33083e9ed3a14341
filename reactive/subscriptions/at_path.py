"""The changes of the rows inside of one row: what a subscription with a path hears.

(7, "orders", 3, "lines")     of the row with key 7 the orders, of that with key 3 the lines

Cost:   of each level, the difference of two values inside, if the row at its beginning changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from optimizer.errors import PlanError
from optimizer.expressions.naming import Level, Nesting
from reactive.collections.bag import Bag
from reactive.collections.long_tuple import parts_between
from reactive.collections.nested_edits import NestedKey, Path, of_sequence
from reactive.collections.zset import Pair, consolidate
from reactive.dataflow.delta import Delta

NOTHING: Bag[Any] = Bag()


def check_path(nesting: Nesting | Level, path: Any) -> Path:
    """Refuse what is no path to rows inside.

    Raises
    ------
    PlanError: it is not `(key, name, ...)`, with names of bindings that are inside.
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


def heard(
    nesting: Nesting, callback: Callable[[Delta[Any]], object], path: Any
) -> Callable[[Delta[Any]], object]:
    """What is called in the place of a callback that hears what is inside at a path."""
    if path is None:
        return callback
    given = check_path(nesting, path)

    @wraps(callback)
    def inside(delta: Delta[Any]) -> object:
        inner = at_path(nesting, delta, given)
        return None if inner is None else callback(inner)

    return inside


def at_path(nesting: Nesting | Level, delta: Delta[Any], path: Path) -> Delta[Any] | None:
    """The change of the rows at a path; None if there is none. Without its row it has no rows."""
    pairs: Sequence[Pair] = tuple(delta)
    level: Any = nesting
    old: Any = NOTHING
    new: Any = NOTHING
    for key, name in zip(path[::2], path[1::2], strict=True):
        rows = [(row, weight) for row, weight in pairs if level.key(row) == key]
        number = [each.name for each in level.levels].index(name)
        place, level = level.kind.roots + number, level.levels[number]
        empty: Any = () if level.is_sequence else NOTHING
        old = next((row[place] for row, weight in rows if weight < 0), empty)
        new = next((row[place] for row, weight in rows if weight > 0), empty)
        pairs = _between(level, old, new)
    if not pairs and not delta.is_snapshot:
        return None
    edits = of_sequence(level, old, new, ()) if level.is_sequence else ()
    key_of = level.key if level.is_sequence else NestedKey(level)
    return Delta(delta.version, pairs, key_of, tuple(edits), is_snapshot=delta.is_snapshot)


def _between(level: Level, old: Any, new: Any) -> Sequence[Pair]:
    """What came and went between two values inside."""
    if level.is_sequence:
        parts = parts_between(old, new)
        return consolidate(
            [(row, -1) for part in parts for row in part[1]]
            + [(row, 1) for part in parts for row in part[3]]
        )
    return tuple(new.difference(old).items())
