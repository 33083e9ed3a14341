"""Compare views with their queries evaluated from scratch.

`bound_of` computes how far the rows of a loop with a tolerance may be from the rows of its query.

    d = the least difference that is passed on, or for the norm of the sum that times the rows

    times rounds     d (1 - q**times) / (1 - q)
    until settled    2 d / (1 - q): d / (1 - q) each from the unique fixpoint

`api/iterate.py` derives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.explain import headline
from optimizer.plans.properties import bindings, nodes, tables
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections import bag_folds
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.reference.bags import (
    Bag,
    Tables,
    are_as_good,
    ordered_rows,
    ordered_runs,
    with_known_limit,
)
from reactive.engine.reference.evaluate import define_queries, evaluate
from reactive.engine.runtime.collector import pause_collector
from reactive.engine.runtime.progress import watch_progress
from reactive.errors import TableError, VerificationError

MOST = 5


def verify_together(
    shown: Sequence[tuple[plan.Node, Any, str]],
    rows: Tables,
    running: AbstractContextManager[None],
    has_rows: Callable[[plan.Table], bool],
) -> None:
    """Compare the contents of several plans, each with its name; shared nodes are evaluated once.

    has_rows: tells if the rows of a table are stored, or in a log.

    Raises
    ------
    VerificationError: some differ; the message names them all.
    TableError: a plan reads a table without its rows, or looks up rows as of earlier commits.
    """
    for node, _, name in shown:
        for table in tables(node):
            if not has_rows(table):
                raise TableError(
                    f"cannot verify {name}: table {table.name!r} is not stored\n"
                    "  there are no rows to evaluate the query on"
                )
        if any(isinstance(part, plan.Lookup) for part in nodes(node)):
            raise TableError(
                f"cannot verify {name}: it looks up rows as of earlier commits\n"
                "  the rows of those commits are not kept"
            )

    told = []
    what = shown[0][2] if len(shown) == 1 else f"{len(shown)} views"
    with (
        pause_collector(),
        running,
        bag_folds.from_scratch(),
        watch_progress(f"verifying {what}") as progress,
        define_queries([node for node, _, _ in shown], rows, progress) as (roots, of),
    ):
        for root, (_, contents, name) in zip(roots, shown, strict=True):
            try:
                _compare_contents(root, contents, name, of)
            except VerificationError as error:
                told.append(str(error))
        del root, roots, of  # free the evaluated rows before the collector runs again
    if told:
        raise VerificationError("\n".join(told))


def _compare_contents(
    node: plan.Node, contents: Any, name: str, rows: Callable[[plan.Node], Bag]
) -> None:
    """Raise `VerificationError` if a view has other rows than its query.

    Rows of a loop may differ within its bound, and rows of a top by equally good ones.
    """
    if isinstance(node, plan.OrderBy):
        is_within(node, name)
        order = with_known_limit(node, rows)
        _compare_in_order(order, list(contents.rows()), name, rows(node.input))
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
    """Raise `VerificationError` if rows differ in order; rows that compare equal may be swapped."""
    expected = ordered_rows(node, rows)
    if shown == expected or (len(shown) == len(expected) and _may_stand_so(node, shown, rows)):
        return
    if Counter(shown) != Counter(expected):
        raise _differs(name, Counter(expected), Counter(shown))
    raise VerificationError(f"{name} has the rows of its query, but not in their order")


def _may_stand_so(node: plan.OrderBy, shown: list[Row], rows: Bag) -> bool:
    """Return True if every row in the window compares equal to the expected row there."""
    start, stop, end = 0, 0, node.offset + len(shown)
    for alike in ordered_runs(node, rows):
        start, stop = stop, stop + len(alike)
        first, last = max(start, node.offset), min(stop, end)
        if first < last and Counter(shown[first - node.offset : last - node.offset]) - Counter(
            alike
        ):
            return False
    return True


def _differs(name: str, expected: Bag, found: Bag) -> VerificationError:
    """Return an error that shows a few of the missing and of the surplus rows."""
    return VerificationError(
        f"{name} differs from its query\n"
        f"  missing: {_few((expected - found).elements())}\n"
        f"  not in the query: {_few((found - expected).elements())}"
    )


def _few(rows: Iterable[Row]) -> str:
    """Return the text of the first `MOST` rows; "none" if there are none."""
    shown = [repr(row) for row, _ in zip(rows, range(MOST + 1), strict=False)]
    return ", ".join(shown[:MOST] + ["..."] * (len(shown) > MOST)) or "none"


def evaluate_plan(node: plan.Node, tables: Tables) -> Bag:
    """Return the rows of a plan, evaluated from scratch; see `evaluate`."""
    return evaluate(node, tables)


ROUNDING = 1 + 1e-9


def is_within(node: plan.Node, name: str) -> plan.Component | plan.Iterate | None:
    """Return the loop whose rows a query has within a bound; None if the rows are exact.

    Raise `PlanError` if no bound is known for the rows.
    """
    loops = [part for part in nodes(node) if isinstance(part, plan.Iterate) and _depends(part)]
    if not loops:
        return None
    while isinstance(node, plan.View):
        node = node.input
    top = node.input if isinstance(node, plan.Component) else node
    if len(loops) > 1 or top is not loops[0]:
        raise _unknown_bound(name, loops[0], "the query goes on from it, or reads several")
    if loops[0].contraction is None:
        raise _unknown_bound(name, loops[0], "its contraction= is not known")
    assert isinstance(node, plan.Component | plan.Iterate)
    return node


def _depends(node: plan.Iterate) -> bool:
    """Return True if rows of the loop depend on its earlier rows."""
    return node.is_tolerant() and (node.times is not None or node.contraction is not None)


def _unknown_bound(name: str, loop: plan.Iterate, why: str) -> PlanError:
    """Return the error for a view over a loop whose rows have no known bound."""
    return PlanError(
        f"cannot verify {name}: {headline(loop)}\n"
        f"  no bound is known for its rows: {why}\n"
        "  a view of the loop alone, with contraction=, can be verified"
    )


def bound_of(node: plan.Iterate, rows: int) -> float:
    """Return the maximum distance of all rows, in the norm of the loop."""
    least = max(each.least for each in node.tolerances if each is not None)
    q = node.contraction
    assert q is not None
    d = least * (rows if node.norm == "sum" else 1)
    return d * (2 if node.times is None else 1 - q**node.times) / (1 - q)


def are_near(
    node: plan.Component | plan.Iterate, found: Bag, expected: Bag, rows: Callable[[plan.Node], Bag]
) -> bool:
    """Return True if rows are within the bound of the expected rows; `rows` evaluates a query."""
    loop, index = (node, 0) if isinstance(node, plan.Iterate) else (node.input, node.index)
    assert isinstance(loop, plan.Iterate)
    tolerance = loop.tolerances[index]
    if tolerance is None:
        return found == expected
    ours, theirs = (_values_by_key(tolerance, loop, index, rows) for rows in (found, expected))
    if ours.keys() != theirs.keys() or any(weight != 1 for weight in found.values()):
        return False
    apart = [abs(value - theirs[key]) for key, value in ours.items() if value != theirs[key]]
    beside = [i for i in range(len(loop.names)) if i != index and loop.norm == "sum"]
    others = sum(len(rows(plan.Component(loop, i))) for i in beside)
    total = sum(apart) if loop.norm == "sum" else max(apart, default=0)
    return bool(total <= bound_of(loop, len(ours) + others) * ROUNDING)


def _values_by_key(
    tolerance: plan.Tolerance, loop: plan.Iterate, index: int, rows: Bag
) -> dict[Any, Any]:
    """Return the value of each key."""
    count = bindings(loop.starts[index])
    by, value = _row_caller(tolerance.by, count), _row_caller(tolerance.value, count)
    return {canonical(by(row)): value(row) for row in rows}


def _row_caller(function: Any, count: int) -> Callable[[Row], Any]:
    call = callable_of(function)
    return call if count == 1 else lambda row: call(*row)
