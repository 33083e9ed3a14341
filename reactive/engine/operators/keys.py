"""The key of a row, by which a join finds its partners: as written, or found in a predicate.

A key as written raises what its callable raises. Where the optimizer found tests and keys in a
predicate, nothing is raised here: a row on which one of them does is an error row, and the
predicate itself is asked of the row and all others (`error_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from optimizer.expr import Call, constant
from optimizer.plans.ranges import Span
from optimizer.plans.side_conditions import SideTerm
from reactive.engine.collections.families import interval, point
from reactive.engine.collections.index import ERROR_KEY, FILTERED, NO_MATCH, Key, match_key
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous

Evaluate = Callable[[Row], Any]


def written_key(key: Evaluate) -> Callable[[Row], Key]:
    """The key as written, or `NO_MATCH`.

    >>> written_key(len)("anna"), written_key(float)("nan")
    (4, NO_MATCH)
    """

    def of(row: Row) -> Key:
        return match_key(key(row))

    return of


def found_key(
    written: Evaluate | None, steps: Sequence[tuple[bool, Evaluate]]
) -> Callable[[Row], Key]:
    """The key by tests and parts of a key (True), in their order, after the key as written.

    >>> key = found_key(None, [(True, len), (False, str.islower)])
    >>> key("anna"), key("Anna"), key(7)
    (4, FILTERED, ERROR_KEY)
    """
    parts = (written is not None) + sum(is_key for is_key, _ in steps)

    def of(row: Row) -> Key:
        own = () if written is None else match_key(written(row))
        try:
            found = _found(row, steps)
        except Exception as error:  # what it is shows when the predicate is asked of a pair
            reraise_asynchronous(error)
            return ERROR_KEY
        if found is FILTERED or own is NO_MATCH:
            return found if found is FILTERED else own
        key = found if written is None else [own, *found]
        if written is None and any(part != part for part in found):
            return NO_MATCH
        return key[0] if parts == 1 else tuple(key)

    return of


def placed(span: Span) -> SideTerm:
    """The key of an index of points or intervals, which raises where a value has no place in an
    order: the row is an error row."""
    one, *ends = span.ends
    called = constant(interval if ends else point)
    call = Call(called, (one.body, *(end.body for end in ends)))
    return SideTerm(one.with_body(call), is_key=True)


def of_classes(value: Any, classes: Collection[type]) -> None:
    """Raise if a value is of none of some classes: its row has no key."""
    if type(value) not in classes:
        raise TypeError(f"{type(value).__name__} is not what is compared here")


def _found(row: Row, steps: Sequence[tuple[bool, Evaluate]]) -> Any:
    found = []
    for is_key, evaluate in steps:
        value = evaluate(row)
        if is_key:
            hash(value)
            found.append(value)
        elif not value:
            return FILTERED
    return found
