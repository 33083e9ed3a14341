"""A batch whose rows are with the tables that they go into.

Cost: O(rows of the batch).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reactive.borders.sources.batch import Batch, Refused, Token
from reactive.borders.sources.targets import NOWHERE, ByTable, Targets
from reactive.engine.collections.zset import Row
from reactive.errors import TableError


@dataclass(frozen=True, slots=True)
class Given:
    """A batch, by tables."""

    upserts: ByTable
    deletes: Mapping[int, Collection[Any]]
    removes: ByTable
    origins: Mapping[Hashable, ByTable]
    appends: Mapping[Hashable, ByTable]
    refused: Mapping[Hashable, Collection[Refused]]
    unfit: Mapping[int, Collection[Refused]]
    anew: Collection[int]
    token: Token
    token_changes: Mapping[Any, Token]

    def rows(self) -> Iterable[tuple[int, Row]]:
        """All rows that are to be there."""
        for some in (self.upserts, *self.origins.values(), *self.appends.values()):
            for number, rows in some.items():
                for row in rows:
                    yield number, row


def given(batch: Batch[Any], targets: Targets) -> Given:
    """A batch by the tables that its rows go into.

    Raises
    ------
    TableError: what is given by key is for a table without key, or the reverse.
    """
    found = Given(
        targets.by_table(batch.upserts),
        targets.keys(batch.deletes),
        targets.by_table(batch.removes),
        {origin: targets.by_table(rows) for origin, rows in batch.origins.items()},
        _appends(batch, targets),
        {origin: some for origin, some in batch.refused.items() if not isinstance(origin, type)},
        {
            targets.number(kind): some
            for kind, some in batch.refused.items()
            if isinstance(kind, type)
        },
        [targets.number(kind) for kind in batch.anew],
        batch.token,
        batch.token_changes,
    )
    if batch.token is not None and batch.token_changes:
        raise TableError("a batch has a token, or the changes of one, and not both")
    if both := batch.origins.keys() & batch.appends.keys():
        raise TableError(
            f"a batch gives all rows of {min(both, key=repr)!r}, and more of them\n"
            "  origin: all rows, in `origins`; or those that are new, in `appends`"
        )
    if NOWHERE in found.unfit:
        raise TableError(
            "what is refused would be a row of a class that no table was given for\n"
            "  Batch(refused={Order: [Refused(text, error, key=7)]}), of a class with a table"
        )
    for number in found.deletes:
        if number == NOWHERE or not targets.is_keyed(number):
            raise TableError(f"{_table(targets, number)} has no key to delete by\n  Batch(removes)")
    for number in found.removes:
        if number == NOWHERE or targets.is_keyed(number):
            raise TableError(f"{_table(targets, number)} has a key to delete by\n  Batch(deletes)")
    return found


def _appends(batch: Batch[Any], targets: Targets) -> dict[Hashable, ByTable]:
    """Also of origins of which there is only what was refused."""
    found = {origin: targets.by_table(rows) for origin, rows in batch.appends.items()}
    beside = (
        origin
        for origin in batch.refused
        if origin not in batch.origins and not isinstance(origin, type)
    )
    return {**{origin: {} for origin in beside}, **found}


def _table(targets: Targets, number: int) -> str:
    return "what was given" if number == NOWHERE else f"table {targets.tables[number].name!r}"
