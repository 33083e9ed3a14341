"""After a restart: the rows that an earlier process left of a part, and those that tables hold now.

    difference  =  rows of the process  -  rows of the state

    none         the part goes on from the state
    "process"    the difference is sent to the state
    "state"      its opposite is committed to the tables, which then hold what the state does
    neither      an error: one of the two would be lost without a word

State:  none.
Cost:   O(rows of the part's inputs), once after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from optimizer import plan
from optimizer.plans.properties import tables
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.remote.fragments import Fragment
from reactive.errors import OffloadError

Adopt: TypeAlias = Literal["state", "process"]
"""Whose rows count where the process and the state differ."""
Entry: TypeAlias = tuple[int, int, Row, int]


def check_adopt(adopt: Adopt | None) -> None:
    """Raise ValueError for what is none."""
    if adopt not in (None, "state", "process"):
        raise ValueError(f'adopt is "state" or "process", not {adopt!r}')


def difference(wanted: Iterable[Entry], kept: Iterable[Entry]) -> list[Entry]:
    """What leads from the entries that an earlier process left to those that are wanted.

    These are taken last: once they are, nothing raises.
    """
    weights: Counter[tuple[int, int, Row]] = Counter()
    for place, bucket, row, weight in kept:
        weights[place, bucket, row] -= weight
    for place, bucket, row, weight in wanted:
        weights[place, bucket, row] += weight
    return [(*entry, weight) for entry, weight in weights.items() if weight]


def to_restore(fragment: Fragment, found: Iterable[Entry]) -> dict[plan.Table, list[Pair]]:
    """What is to be inserted into and deleted from tables so that a difference is none.

    Raises
    ------
    OffloadError: the state does not hold whole rows.
    """
    if not fragment.is_whole:
        raise OffloadError(
            "the state of this part holds what it needs of rows, not the rows of a table\n"
            '  fill the table, and then say adopt="process"'
        )
    of: dict[plan.Table, dict[Row, int]] = {}
    for place, _, row, weight in found:
        (table,) = tables(fragment.inputs[place])
        of.setdefault(table, {})[row] = -weight  # the same of each input that the row is in
    return {table: list(rows.items()) for table, rows in of.items()}


def refusal(fragment: Fragment, found: Sequence[Entry]) -> OffloadError:
    """The error of a difference that nobody has decided about."""
    places = {place for place, *_ in found}
    of_rows = places.issubset(range(len(fragment.inputs)))
    inputs = [fragment.inputs[place] for place in places] if of_rows else fragment.inputs
    names = {table.name: None for node in inputs for table in tables(node)}
    apart = _rows_apart(fragment, found) if of_rows else f"sums of {len(found):,} groups differ"
    return OffloadError(
        f"{_listed(list(names))} not hold what an earlier process left in the checkpoint: {apart}\n"
        '  view.offload(adopt="state") puts the rows of the state into the process\n'
        '  view.offload(adopt="process") sends the difference to the state\n'
        "  SparkOffload(adopt=...) says so for all views"
    )


def _rows_apart(fragment: Fragment, found: Sequence[Entry]) -> str:
    here = sum(weight for *_, weight in found if weight > 0)
    there = -sum(weight for *_, weight in found if weight < 0)
    sample = f", such as {found[0][2]!r}" if fragment.is_whole else ""
    return f"{here:,} rows are in the process only, {there:,} in the state only{sample}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names))
    return f"table {shown} does" if len(names) == 1 else f"tables {shown} do"
