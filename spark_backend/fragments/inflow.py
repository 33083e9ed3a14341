"""What a flush is given, as frames: entries from the process, staged files, rows that are fed.

State:  none.
Cost:   O(entries) here; rows that are fed do not come by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from optimizer import plan
from reactive.engine.collections.zset import canonical
from reactive.engine.reference.bags import Bag
from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.remote import Entry, Part
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import to_arrow
from spark_backend.codec.schema import Typed
from spark_backend.direct.flush import TooMany, present, summed, through
from spark_backend.fragments.fed import since
from spark_backend.fragments.given import Input
from spark_backend.fragments.members import Given, Member
from spark_backend.state.tables import StateTables, united
from spark_backend.steps.step import schema_of
from spark_backend.tables.chain import Chain

_ONE_FOR_ONE = (plan.Where, plan.Select, plan.Extend)
"""Nodes that make no more rows than they are given."""


class Inflow:
    """Makes frames of what is given to inputs, by their place."""

    def __init__(self, session: Session, inputs: Mapping[int, Input], tables: StateTables) -> None:
        self._session, self._inputs, self._tables = session, inputs, tables

    def version(self, place: int, upto: int) -> int:
        """Up to which version an input is taken in that is fed."""
        found: int = self._tables.manifest.tokens.get(version_of(place), upto)
        return found

    def not_taken_in(self, fed: Iterable[ExternalInput]) -> list[ExternalInput]:
        """What is fed, from the version on up to which it was taken in."""
        later = [replace(f, after=self.version(f.place, f.after)) for f in fed]
        return [source for source in later if source.upto > source.after]

    def local(self, of: Given, *, is_late: bool) -> frozenset[int]:
        """The inputs whose rows are in the query itself, not in files that it reads."""
        if of.staged:
            return frozenset()
        own, others = {entry[0] for entry in of.entries}, of.fed_places
        some = {source.place for source in of.fed if not is_late and _is_local(source)}
        return frozenset((own - others) | (some - own))

    def frames(self, of: Given, *, is_late: bool) -> dict[int, DataFrame]:
        """What is given, by place."""
        by_place: dict[int, list[Entry]] = {}
        for entry in of.entries:
            by_place.setdefault(entry[0], []).append(entry)
        found = dict(of.staged)
        for place, entries in by_place.items():
            frame = self._frame(place, entries)
            found[place] = united([found[place], frame]) if place in found else frame
        for source in of.fed:
            found[source.place] = self.fed(source, is_late=is_late)
        return found

    def bags(self, of: Given) -> dict[int, Bag]:
        """The same of few rows, here, which have not been staged.

        Raises
        ------
        TooMany: they have, or are those of a table that is on Spark from the start.
        """
        if of.staged or any(source.after < 0 for source in of.fed):
            raise TooMany("rows that are not here")
        found: dict[int, Bag] = {}
        for place, _, row, weight in of.entries:
            found.setdefault(place, Counter())[canonical(row)] += weight
        for source in of.fed:
            rows: Any = source.rows
            given = rows.frames.few(source.after, source.upto)
            found[source.place] = through(source.chain, summed(given))
        return {place: present(bag) for place, bag in found.items()}

    def staged(self, member: Member, part: Part, live: set[int]) -> dict[int, DataFrame]:
        """What has been staged of inputs that nobody else brings, by place."""
        schemas = [schema_of(self._inputs[place].kept) for place in member.places]
        found = member.staged.frames(self._session.spark, part.number, schemas)
        placed = {member.places[place]: frame for place, frame in found.items()}
        return {place: frame for place, frame in placed.items() if place not in live}

    def _frame(self, place: int, entries: Sequence[Entry]) -> DataFrame:
        kept = self._inputs[place].kept
        schema: Any = schema_of(kept)
        made: DataFrame = self._session.spark.createDataFrame(table_of(kept, entries), schema)
        return made

    def fed(self, source: ExternalInput, *, is_late: bool) -> DataFrame:
        given = since(source, is_late=is_late)
        return Chain(self._session.paths, is_typed=True).run(source.chain, given).frame


def table_of(kept: Typed, entries: Sequence[Entry]) -> pa.Table:
    """Rows with their weights.

    Raises
    ------
    OffloadError: columns do not hold one of them.
    """
    array = to_arrow(kept, [entry[2] for entry in entries])
    return pa.table({"row": array, "weight": pa.array([e[3] for e in entries], pa.int64())})


def version_of(place: int) -> str:
    """The token of an input that is fed: the version of its table that is taken in."""
    return f"input{place}"


def _is_local(source: ExternalInput) -> bool:
    rows: Any = source.rows
    is_here: bool = rows.frames.is_local(source.after, source.upto)
    return is_here and all(isinstance(n, _ONE_FOR_ONE) for n in source.chain)
