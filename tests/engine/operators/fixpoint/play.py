"""Play the history of a case on databases, and hold views, deltas and naive evaluation together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from reactive import Database
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.histories import Change, Commit, Do, Model, resolved
from tests.engine.operators.fixpoint.naive import Bag, evaluate
from tests.random_queries.programs import INPUTS, Case
from tests.random_queries.term_queries import Builder, Opaque
from tests.random_queries.terms import Term


class CalledOffError(Exception):
    """Raised in a transaction, to undo it."""


class Stage:
    """A database, and the views of some queries over its tables.

    `way` says how they are run: with the optimizer, without, or with callables that it cannot read.
    """

    def __init__(self, queries: tuple[Term, ...], way: str) -> None:
        self.queries = queries
        self.way = way
        self.db = Database(optimize=way != "as_written")
        self.wrap: Callable[[Any], Any] = Opaque if way == "opaque" else lambda function: function
        self.tables: dict[str, Any] = {name: self.db.table(tuple, name=name) for name in INPUTS}
        self.followers: list[tuple[Term, Follower]] = []
        self.empty: int | None = None

    def watch(self) -> None:
        """Make new views of all queries."""
        builder = Builder(self.tables, self.wrap)
        for query in self.queries:
            self.followers.append((query, Follower(builder.relation(query).materialize())))
        if len(self.followers) == len(self.queries) and not any(self.tables.values()):
            self.empty = self.rows()

    def forget_first(self) -> None:
        """Drop the views that were made first."""
        del self.followers[: len(self.queries)]

    def rows(self) -> int:
        """State of all views."""
        return sum(follower.view.stats().rows for _, follower in self.followers)

    def heard(self) -> int:
        return sum(follower.heard for _, follower in self.followers)

    def agree(self, wanted: dict[Term, Bag]) -> None:
        for query, follower in self.followers:
            follower.agree(wanted[query])

    def verify(self) -> None:
        for _, follower in self.followers:
            follower.view.verify()


class Play:
    """A case on stages, which all go through the same."""

    def __init__(self, case: Case, stages: list[Stage]) -> None:
        self.case = case
        self.stages = stages
        self.model: Model = {name: Counter() for name in INPUTS}
        self.wanted = self.evaluated(self.model)

    def evaluated(self, model: Model) -> dict[Term, Bag]:
        return {query: evaluate(query, model) for query in self.case.queries}

    def run(self) -> None:
        """Play the whole history, and then delete all rows."""
        for number, commit in enumerate(self.case.history):
            if number == self.case.late:
                self.watch()
            self.commit(commit)
        if self.case.twice:
            self.again()
        for stage in self.stages:
            stage.verify()
        for name in INPUTS:
            self.together((Change("clear", name, (0, 0), 0),), called_off=False)
        for stage in self.stages:
            assert stage.empty in (None, stage.rows())

    def again(self) -> None:
        """Views of the same queries, made late; the first ones go, and a commit follows."""
        self.watch()
        for stage in self.stages:
            stage.forget_first()
        self.commit(self.case.history[0])

    def watch(self) -> None:
        for stage in self.stages:
            stage.watch()
        self.check()

    def check(self) -> None:
        for stage in self.stages:
            stage.agree(self.wanted)

    def commit(self, commit: Commit) -> None:
        if commit.how == "each":
            for change in commit.changes:
                self.together((change,), called_off=False)
        else:
            self.together(commit.changes, called_off=commit.how == "called_off")

    def together(self, changes: tuple[Change, ...], *, called_off: bool) -> None:
        """One commit of all changes; it must fail if the evaluation of its result does."""
        dos, model = self.resolved(changes)
        error: Exception | None = CalledOffError() if called_off else None
        wanted = self.wanted
        if not called_off:
            try:
                wanted = self.evaluated(model)
            except ZeroDivisionError as raised:
                error = raised
        for stage in self.stages:
            self.perform(stage, dos, error)
        if error is None:
            self.model, self.wanted = model, wanted
        self.check()

    def resolved(self, changes: tuple[Change, ...]) -> tuple[list[Do], Model]:
        dos, model = [], self.model
        for change in changes:
            done = resolved(model, change)
            if done is not None:
                do, model = done
                dos.append(do)
        return dos, model

    def perform(self, stage: Stage, dos: list[Do], error: Exception | None) -> None:
        heard = stage.heard()
        try:
            with stage.db.transaction():
                for do in dos:
                    do(stage.tables)
                if isinstance(error, CalledOffError):
                    raise error
        except (CalledOffError, ZeroDivisionError) as raised:
            assert type(raised) is type(error), f"wanted {error!r}"
            assert stage.heard() == heard
        else:
            assert error is None, f"wanted {error!r}"


def play(case: Case) -> None:
    """A case as it is run by default, and in another way."""
    Play(case, [Stage(case.queries, way) for way in ("optimized", case.other_way)]).run()
