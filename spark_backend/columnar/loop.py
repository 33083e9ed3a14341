"""A loop of a number of rounds over columns, and how its rows differ from what they were.

    sides                 rows of which some come and go, with weights: what is there
    rounds                `plans.py`
    after - before        rows with weights; with a tolerance, of rows whose value moved that far

State:  none.
Cost:   O(rounds * (rows and pairs)), some nanoseconds for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optimizer import plan
from optimizer.expr import Lifted
from spark_backend.columnar.expressions import column
from spark_backend.columnar.plans import Evaluation, Frame
from spark_backend.columnar.trees import Array, NotColumnar, Rows, Weighted, chained, net, taken


def rounds(
    loop: plan.Iterate, relations: Sequence[plan.Node], sides: dict[tuple[Any, int], Frame]
) -> list[Frame]:
    """The rows of some relations of a loop after all of its rounds.

    Raises
    ------
    NotColumnar: it is not done over columns.
    """
    if loop.times is None or loop.is_tolerant():
        raise NotColumnar("rounds until it settles")
    evaluation = Evaluation(sides, loop.level)
    now = [evaluation.frame(start, {}) for start in loop.starts]
    for _ in range(loop.times):
        given = dict(enumerate(now))
        now = [evaluation.frame(body, given) for body in loop.bodies]
    places = [of.index if isinstance(of, plan.Component) else 0 for of in relations]
    return [now[place] for place in places]


def there(rows: Rows, weights: Array) -> Frame:
    """What is there of rows that come and go."""
    if (weights == 1).all():
        return Frame(len(weights), (rows,))
    rows, weights = net(rows, weights)
    at = np.repeat(np.flatnonzero(weights > 0), weights[weights > 0])
    return Frame(len(at), (taken(rows, at),))


def changed(before: Weighted, after: Rows, size: int) -> Weighted:
    """How rows change."""
    weights = np.concatenate((-before[1], np.ones(size, np.int64)))
    return net(chained([before[0], after]), weights)


def moved(before: Weighted, after: Rows, size: int, tolerance: plan.Tolerance) -> Weighted:
    """How what is shown of rows changes: those of a key whose value has moved far enough.

    Raises
    ------
    NotColumnar: a key has several rows, or is no integer.
    """
    was = net(*before)
    if not (was[1] == 1).all():
        raise NotColumnar("rows that are there several times")
    keys, values = _read(was[0], len(was[1]), tolerance)
    new_keys, new_values = _read(after, size, tolerance)
    order = np.argsort(keys)
    if not len(keys):
        return after, np.ones(size, np.int64)
    at = order[np.minimum(np.searchsorted(keys[order], new_keys), len(keys) - 1)]
    known = keys[at] == new_keys
    is_near = known & (np.abs(new_values - values[at]) < tolerance.least)
    come, stays = np.flatnonzero(~is_near), at[is_near]
    gone = np.ones(len(keys), bool)
    gone[stays] = False
    rows = chained([taken(was[0], np.flatnonzero(gone)), taken(after, come)])
    weights = np.concatenate((-np.ones(int(gone.sum()), np.int64), np.ones(len(come), np.int64)))
    return net(rows, weights)


def _read(rows: Rows, size: int, tolerance: plan.Tolerance) -> tuple[Array, Array]:
    """The key and the value of rows, of which each key has one."""
    if not isinstance(tolerance.by, Lifted) or not isinstance(tolerance.value, Lifted):
        raise NotColumnar("a tolerance that is not read")
    keys = column(tolerance.by.body, [rows], size)
    values = column(tolerance.value.body, [rows], size)
    if keys.kind is not int or len(np.unique(keys.values)) != size:
        raise NotColumnar("keys that several rows have")
    return keys.values, values.values
