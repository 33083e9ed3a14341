"""Compare what is maintained with the query evaluated from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from optimizer import plan
from optimizer.plans.properties import tables
from reactive.engine.collections import folded
from reactive.engine.collections.zset import Row
from reactive.engine.reference.bags import Bag, Tables
from reactive.engine.reference.bound import are_near, is_within
from reactive.engine.reference.evaluate import defined_together, evaluate
from reactive.engine.reference.order import in_order, settled
from reactive.engine.reference.top import are_as_good
from reactive.engine.runtime.collector import paused
from reactive.engine.runtime.progress import watched
from reactive.errors import TableError, VerificationError

MOST = 5


def verify_together(
    shown: Sequence[tuple[plan.Node, Any, str]],
    rows: Tables,
    running: AbstractContextManager[None],
) -> None:
    """Compare the contents of several plans, each with its name; nodes that they share are
    evaluated once.

    Raises
    ------
    VerificationError: some differ; the message names them all.
    TableError: a plan reads a table that is not stored.
    """
    for node, _, name in shown:
        for table in tables(node):
            if not table.stored:
                raise TableError(
                    f"cannot verify {name}: table {table.name!r} is not stored\n"
                    "  there are no rows to evaluate the query on"
                )

    told = []
    what = shown[0][2] if len(shown) == 1 else f"{len(shown)} views"
    with (
        paused(),
        running,
        folded.from_scratch(),
        watched(f"verifying {what}") as progress,
        defined_together([node for node, _, _ in shown], rows, progress) as (roots, of),
    ):
        for root, (_, contents, name) in zip(roots, shown, strict=True):
            try:
                _compare(root, contents, name, of)
            except VerificationError as error:
                told.append(str(error))
        del root, roots, of  # what was made is gone before the collector could look at it
    if told:
        raise VerificationError("\n".join(told))


def _compare(node: plan.Node, contents: Any, name: str, rows: Callable[[plan.Node], Bag]) -> None:
    if isinstance(node, plan.OrderBy):
        is_within(node, name)
        _compare_in_order(node, list(contents.rows()), name, rows(node.input))
        return
    loop = is_within(node, name)
    expected, found = rows(node), dict(contents.items())
    if loop is not None:
        if not are_near(loop, Counter(found), expected, rows):
            raise _differs(f"{name}, beyond its bound,", expected, Counter(found))
        return
    if dict(expected) != found and expected != Counter(found):
        if isinstance(node, plan.Top) and are_as_good(
            node, Counter(found), expected, rows(node.input)
        ):
            return
        raise _differs(name, expected, Counter(found))


def _compare_in_order(node: plan.OrderBy, shown: list[Row], name: str, rows: Bag) -> None:
    """Compare rows in order; those that no order tells apart may stand for each other."""
    expected = in_order(node, rows)
    if shown == expected or (len(shown) == len(expected) and _may_stand_so(node, shown, rows)):
        return
    if Counter(shown) != Counter(expected):
        raise _differs(name, Counter(expected), Counter(shown))
    raise VerificationError(f"{name} has the rows of its query, but not in their order")


def _may_stand_so(node: plan.OrderBy, shown: list[Row], rows: Bag) -> bool:
    """Whether every place of the window has a row that no order tells apart from the one there."""
    start, stop, end = 0, 0, node.offset + len(shown)
    for alike in settled(node, rows):
        start, stop = stop, stop + len(alike)
        first, last = max(start, node.offset), min(stop, end)
        if first < last and Counter(shown[first - node.offset : last - node.offset]) - Counter(
            alike
        ):
            return False
    return True


def _differs(name: str, expected: Bag, found: Bag) -> VerificationError:
    return VerificationError(
        f"{name} differs from its query\n"
        f"  missing: {_few((expected - found).elements())}\n"
        f"  not in the query: {_few((found - expected).elements())}"
    )


def _few(rows: Iterable[Row]) -> str:
    shown = [repr(row) for row, _ in zip(rows, range(MOST + 1), strict=False)]
    return ", ".join(shown[:MOST] + ["..."] * (len(shown) > MOST)) or "none"


def evaluated(node: plan.Node, tables: Tables) -> Bag:
    """Return the rows of a plan, evaluated from scratch; see `evaluate`."""
    return evaluate(node, tables)
