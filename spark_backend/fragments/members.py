"""A fragment among those that share state tables, and what it is given for a flush.

What it is given is by its own inputs; what is shared is by the places that these have among all.

State:  how far a fragment has come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Entry
from reactive.errors import TakenIn
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Value
from spark_backend.fragments.fed import changed
from spark_backend.fragments.given import Input
from spark_backend.fragments.tries import Owed
from spark_backend.state.staged import Staged
from spark_backend.state.tables import TableSpec
from spark_backend.steps.keys import bound
from spark_backend.steps.sets import hashed
from spark_backend.steps.step import Step, schema_of


@dataclass(eq=False)
class Member:
    """A fragment among those that share, and how far it has come."""

    fragment: Fragment
    name: str
    """Of its plan, in any process."""
    node: plan.Node
    """Its node on top, over inputs by their place among those that are shared."""
    places: tuple[int, ...]
    """Of each of its inputs, the place there."""
    staged: Staged
    owed: Owed = field(default_factory=Owed)
    """What first flushes were of that have failed."""
    resumed: int | None = None
    """The last flush of an earlier process, if this goes on from there."""
    brought: set[int] = field(default_factory=set)
    """The places whose rows others brought when it began."""
    is_loaded: bool = False
    applied: int = -1
    """The last of its numbers that has been taken in."""
    told: int = -1
    """The flush in which that was."""
    raised: tuple[int, TakenIn] | None = None
    """The number at which a callable has raised."""
    top: Step = field(init=False)
    lines: list[str] = field(init=False)
    """What runs where."""
    output: TableSpec = field(init=False)
    tables: dict[str, TableSpec] = field(init=False)
    """All that it reads or adds to."""
    rows: dict[int, TableSpec] = field(init=False)
    """The tables that hold the rows of the inputs, by place."""

    def placed(self, entries: Sequence[Entry]) -> list[Entry]:
        """Entries of its inputs as those of the places that these have."""
        return [(self.places[place], at, row, weight) for place, at, row, weight in entries]

    def placed_inputs(self, fed: Sequence[ExternalInput]) -> list[ExternalInput]:
        """The same of what its inputs are fed with."""
        return [replace(source, place=self.places[source.place]) for source in fed]


@dataclass(frozen=True)
class Given:
    """What a flush is of, by place: entries, what inputs are fed with, and what has been staged."""

    entries: Sequence[Entry]
    fed: Sequence[ExternalInput]
    staged: Mapping[int, DataFrame] = field(default_factory=dict)
    staged_rows: Mapping[int, int] = field(default_factory=dict)
    """How many rows have been staged of each input."""

    @property
    def is_nothing(self) -> bool:
        """Whether no row can change by it."""
        return not (self.entries or self.fed or self.staged)

    @property
    def fed_places(self) -> set[int]:
        """The inputs that are fed."""
        return {source.place for source in self.fed}

    @property
    def count(self) -> int:
        """How many rows change at most."""
        return self.counts.total()

    @property
    def counts(self) -> Counter[int]:
        """How many rows of each input change at most."""
        found = Counter(entry[0] for entry in self.entries)
        found.update(self.staged_rows)
        for source in self.fed:
            found[source.place] += changed((), [source])
        return found


class Loading:
    """A member that is loaded, and the tables by which inputs of it are fed."""

    def __init__(self, member: Member, sources: Sequence[ExternalInput]) -> None:
        self.member = member
        self.sources = {source.place: source for source in sources}


def name_of(fragment: Fragment, inputs: Sequence[Input]) -> str:
    """The name of a plan over inputs, in any process."""
    return fingerprint(fragment.node, fragment.inputs, tuple(given.kept for given in inputs))


def rows_table(
    name: str, kept: Typed, *, by_group: bool = False, of_groups: bool = False
) -> TableSpec:
    """A table of rows with weights, in buckets by what they are looked up by."""

    def bucket() -> Column:
        return hashed(looked_up(kept, by_group=by_group))

    return TableSpec(name, schema_of(kept), ("row",), ("weight",), bucket, of_groups=of_groups)


def looked_up(kept: Typed, *, by_group: bool) -> Value:
    """What of the rows of the output a reader gives: their group, or all of them."""
    row = Value(F.col("row"), kept)
    return bound(row, 2)[0] if by_group else row


def moved(read: plan.Recursive, places: Sequence[int]) -> plan.Node:
    """An input of a fragment, by its place among all."""
    place = places[read.index]
    return replace(read, index=place, name=f"input {place}")
