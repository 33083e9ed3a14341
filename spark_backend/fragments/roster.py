"""The fragments that share state tables: their inputs, their steps, and the tables that they need.

    fragment --inputs to positions, steps--> member

State:  the members, and the steps of the current JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optimizer import plan
from optimizer.plans.explain import headline
from optimizer.plans.fingerprint import fingerprint
from optimizer.traverse import substituted
from reactive.engine.operators.plain import chain_over
from reactive.engine.remote.fragments import LEVEL, Fragment
from reactive.errors import OffloadError
from spark_backend.aggregates.totals import Totals
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Kept, Pickled, Typed, kept_as
from spark_backend.fragments.compile import Compiler, Maker
from spark_backend.fragments.members import (
    Input,
    Member,
    place_input,
    plan_name,
    rows_table,
    version_token,
)
from spark_backend.state.ends import StagedFiles
from spark_backend.state.manifest import LOADS
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables
from spark_backend.steps.step import NotColumns, schema_of
from spark_backend.tables.chain import Chain, Weighted

PLANS = "plans"
"""The token with the names of plans whose tables are as of the last flush."""
MOST = 8
"""The maximum number of fragments that share: the query of a job grows with them."""


class Roster:
    """The members that share the tables of a folder.

    Parameters
    ----------
    plan_of: identifies the owner of the state.
    makers: functions that make the steps of further nodes.

    Raises
    ------
    OffloadError: the state belongs to others, or cannot be read.
    """

    def __init__(
        self, session: Session, folder: str, plan_of: str, makers: tuple[Maker, ...]
    ) -> None:
        self._session, self._folder, self._makers = session, folder, makers
        self._spark: Any = None
        self._compiler: Compiler | None = None
        self._specs: dict[str, TableSpec] = {}
        self._names: dict[Any, str] = {}
        self.inputs: dict[int, Input] = {}
        self.members: list[Member] = []
        self.tables = StateTables(session, folder, plan_of, self._specs)

    @property
    def spark(self) -> Any:
        """The session of the steps."""
        return self._spark

    def add(self, fragment: Fragment) -> Member:
        """Add a fragment.

        Raises
        ------
        NotColumns: columns cannot express it; nothing has been written.
        """
        inputs = inputs_of(self._session, fragment)
        places = tuple(self._position(given) for given in inputs)
        node = substituted(fragment.node, LEVEL, lambda read: place_input(read, places))
        name = plan_name(fragment, inputs)
        staged = StagedFiles(self._session, f"{self._folder}/{LOADS}/{name}")
        member = Member(fragment, name, node, places, staged)
        self.compile()
        self._add(member)
        self.members.append(member)
        if self.tables.number is not None and self.keeps(name):
            member.applied = member.resumed = self.tables.number
        return member

    def remove(self, member: Member) -> None:
        """Remove a member, if it is still there."""
        if member in self.members:
            self.members.remove(member)
            member.staged.forget()
            self._drop_unneeded()

    def unneeded_tables(self) -> set[str]:
        """Return the tables that no member needs."""
        return set(self.tables.manifest.tables) - set(self._specs)

    def _position(self, given: Input) -> int:
        """Return the position of an input: the same in any process, and unique."""
        for place, known in self.inputs.items():
            if known.node == given.node:
                return place
        place = int(fingerprint(given.node)[:12], 16)
        while place in self.inputs:
            place += 1
        self.inputs[place] = given
        return place

    def keeps(self, name: str) -> bool:
        """Return True if the tables of a plan are as of the last flush."""
        return name in self.plans

    @property
    def plans(self) -> Sequence[str]:
        """The plans whose tables are as of the last flush."""
        found: Sequence[str] = self.tables.manifest.tokens.get(PLANS, ())
        return found

    def _drop_unneeded(self) -> None:
        """Remove the tables and inputs that no member needs."""
        specs = [spec for m in self.members for spec in m.tables.values()]
        self._specs.clear()
        self._specs.update((spec.name, spec) for spec in specs)
        read = {place for member in self.members for place in member.places}
        for place in set(self.inputs) - read:
            del self.inputs[place]

    def compile(self) -> None:
        """Make the steps, or make them again for a new JVM, because columns belong to one JVM."""
        if self._compiler is not None and self._spark is self._session.spark:
            return
        self._spark = self._session.spark
        self._compiler = Compiler(self._session, self.inputs, self._makers, self._names)
        for member in self.members:
            self._add(member)

    def _add(self, member: Member) -> None:
        """Make the steps of a member that do not exist yet."""
        compiler = self._compiler
        assert compiler is not None
        compiler.begin()
        member.top = compiler.top(member.node)
        member.lines, steps = compiler.steps, compiler.tables
        member.output = rows_table(
            f"output{member.name[:10]}",
            member.top.kept,
            by_group=member.fragment.is_by_group,
            of_groups=isinstance(member.top, Totals),
        )
        member.rows = {
            place: self._rows_table(place, steps)
            for place in member.places
            if not self.inputs[place].has_events
        }
        own = [*steps.values(), member.output, *member.rows.values()]
        member.tables = {spec.name: spec for spec in own}
        self._specs.update(member.tables)

    def _rows_table(self, place: int, steps: Mapping[str, TableSpec]) -> TableSpec:
        """Return the table with the rows of an input: an arrangement by some key, if there is
        any."""
        assert self._compiler is not None
        given = self._compiler.given(place)
        for arranged in self._compiler.arrangements_of(given):
            if arranged.spec.name in steps:
                return arranged.spec
        return rows_table(f"input{place}", given.kept)

    def is_live(self, member: Member, place: int) -> bool:
        """Return True if others provide the rows of the input of a member at `place`."""
        return member.places[place] in self.read_by_others(member)

    def is_fed(self, place: int) -> bool:
        """Return True if the input at `place` is external: its rows are in a table on Spark."""
        return version_token(place) in self.tables.manifest.tokens

    @property
    def is_settled(self) -> bool:
        """True if all fragments are loaded, so that they receive the same changes."""
        return all(member.is_loaded for member in self.members)

    @property
    def has_room(self) -> bool:
        """True if another fragment can be loaded: there are few members, and all plans of an
        earlier process are continued."""
        return len(self.members) < MOST and not self.parked_plans()

    def has(self, name: str) -> bool:
        """Return True if a member has the plan."""
        return any(member.name == name for member in self.members)

    def read_by_others(self, member: Member) -> set[int]:
        """Return the inputs whose rows other loaded members provide."""
        loaded = [m for m in self.members if m.is_loaded and m is not member]
        return {place for other in loaded for place in other.places}

    def parked_plans(self) -> list[str]:
        """Return the plans that an earlier process left, and that have no member yet."""
        here = {member.name for member in self.members if member.is_loaded}
        return [name for name in self.plans if name not in here]

    def here(self) -> list[Member]:
        """Return the members whose tables are as of the last flush: they are loaded, or their plan
        is current."""
        return [m for m in self.members if m.is_loaded or self.keeps(m.name)]


# The row types of the inputs of a fragment, and the check for columns.


def inputs_of(session: Session, fragment: Fragment) -> tuple[Input, ...]:
    """Return the row type of each input.

    Raises
    ------
    NotColumns: the rows of an input have no columns.
    """
    return tuple(Input(node, _input_type(session, node)) for node in fragment.inputs)


def can_be_columns(session: Session, fragment: Fragment, makers: tuple[Maker, ...] = ()) -> bool:
    """Return True if columns can express all of a fragment."""
    return find_column_obstacle(session, fragment, makers) is None


def find_column_obstacle(
    session: Session, fragment: Fragment, makers: tuple[Maker, ...] = ()
) -> str | None:
    """Return the reason why columns cannot express all of a fragment, or None."""
    for node in fragment.inputs:
        kept = _base_encoding(node)
        if isinstance(kept, Pickled):
            return kept.reason  # known without Spark
    try:
        inputs = dict(enumerate(inputs_of(session, fragment)))
        Compiler(session, inputs, makers).top(fragment.node)
    except (NotColumns, OffloadError) as error:
        return str(error).partition("\n")[0]
    return None


def _base_encoding(node: plan.Node) -> Kept:
    """Return how the rows of the table below an input are stored: in columns, or pickled, with the
    reason."""
    _, table = chain_over(node)
    if not isinstance(table, plan.Table):
        return Pickled(f"{headline(table)} is no table")
    return kept_as(table.row_type)


def _input_type(session: Session, node: plan.Node) -> Typed:
    """Return the row type of an input. Raises `NotColumns` if its rows have no columns."""
    chain, _ = chain_over(node)
    kept: Kept = _base_encoding(node)
    if chain and not isinstance(kept, Pickled):
        empty = session.spark.createDataFrame([], schema_of(kept))
        kept = Chain(session.paths, is_typed=True).run(chain, Weighted(empty, kept)).kept
    if isinstance(kept, Pickled):
        raise NotColumns(kept.reason)
    return kept
