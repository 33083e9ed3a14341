"""Distinct: the pages that each user has seen, however often."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.rows import REGULARS, Visit, visit
from asv_benchmarks.workload import (
    Listener,
    OldNew,
    Result,
    Rows,
    Stream,
    TableDelta,
    TableOf,
    Verb,
    Workload,
)
from asv_benchmarks.workloads.counts import take_one
from reactive import Relation, Table

Pair = tuple[int, int]


def query(visits: Table[Visit]) -> Relation[*tuple[Any, ...]]:
    """(user, page), each once."""
    pairs: Relation[*tuple[Any, ...]] = visits.select(lambda v: (v.user, v.page)).distinct()
    return pairs


class Twin:
    """Keep visits with their counts, to refuse the removal of an absent one.

    Keep the number of visits of each pair, to know the first and the last one; the keys of that
    dictionary are the result.
    """

    def __init__(self, listener: Listener) -> None:
        self._visits: dict[Visit, int] = {}
        self._pairs: dict[Pair, int] = {}
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Visit) -> None:
        self._visits[row] = self._visits.get(row, 0) + 1
        pair = (row.user, row.page)
        count = self._pairs.get(pair, 0)
        self._pairs[pair] = count + 1
        if not count:
            self._listener.change(None, pair)

    def remove(self, row: Visit) -> None:
        take_one(self._visits, row)
        pair = (row.user, row.page)
        if not take_one(self._pairs, pair):
            self._listener.change(pair, None)

    def batch(self, *deltas: TableDelta) -> None:
        visits, pairs = self._visits, self._pairs
        before: dict[Pair, bool] = {}
        for row, weight in deltas[0].pairs():
            pair = (row.user, row.page)
            if pair not in before:
                before[pair] = pair in pairs
            if weight > 0:
                visits[row] = visits.get(row, 0) + 1
                pairs[pair] = pairs.get(pair, 0) + 1
            else:
                take_one(visits, row)
                take_one(pairs, pair)
        changes: list[OldNew] = []
        for pair, was in before.items():
            if was != (pair in pairs):
                changes.append((pair, None) if was else (None, pair))
        self._listener.changes(changes)

    def result(self) -> Result:
        return dict.fromkeys(self._pairs, 1)


def rows(size: int, random: Random) -> Rows:
    """Return visits; half of them are the only one of their user."""
    return ([visit(number, random) for number in range(size)],)


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete visits; visits of users who come once are always seen."""
    return Churn(
        rows[0], lambda number: visit(number, random), lambda v: v.user >= REGULARS, random
    )


WORKLOAD = Workload(
    name="distinct",
    title="distinct",
    tables=(TableOf(Visit),),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
