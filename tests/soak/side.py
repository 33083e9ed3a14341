"""A database that plays a history, with its views and the deltas of their subscribers."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import reactive
from reactive import Database, TableError
from tests.random_queries.histories import Held, Model, Step
from tests.random_queries.nodes import Node
from tests.random_queries.oracle import Oracle, Rows
from tests.random_queries.rows import CLASSES, bag, frozen
from tests.random_queries.statements import Call
from tests.random_queries.written import relation as relation_of
from tests.soak.cases import Life
from tests.soak.elsewhere import Elsewhere
from tests.soak.hearing import Hearing
from tests.soak.interrupts import OutOfTime, interrupted, thrown_into


class Aborted(Exception):
    """Exception that ends a transaction."""


class Difference(Exception):
    """The library does something else than the oracle."""


@dataclass
class Live:
    """A plan that is a view, has a subscriber, or both."""

    node: Node
    view: Any
    hearing: Hearing | None


class Side:
    """Play calls on a database, and compare its contents with an oracle."""

    def __init__(
        self,
        name: str,
        names: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        tables: Sequence[Held],
        *,
        optimize: bool,
        strict: bool,
        shares: bool,
        now: datetime | None = None,
        values: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.db = Database(optimize=optimize, strict=strict)
        self.held = tables
        self._parameters: list[Any] = []
        if now is not None:
            self.db.clock.advance(now)
            self._parameters = [self.db.parameter(value) for value in values]
        self.tables: list[Any] = []
        for i, held in enumerate(tables):
            self.tables.append(self._table(i, held))
        moving = {f"p{i}": parameter for i, parameter in enumerate(self._parameters)}
        self.names = names({"now": reactive.now, **moving})
        self._shares = shares
        self._known: dict[int, Any] = {}
        self._elsewhere = Elsewhere()
        self.live: dict[int, Live] = {}

    def _table(self, place: int, held: Held) -> Any:
        name, kind = f"t{place}", CLASSES[held.kind]
        if held.late:
            return self.tables[-1].late
        if held.lateness is not None:
            lateness = timedelta(minutes=held.lateness)
            return self.db.stream(kind, name=name, at=lambda e: e.at, lateness=lateness)
        options: dict[str, Any] = {}
        if held.expires is not None:
            at, minutes = held.expires
            options = {"expire_after": timedelta(minutes=minutes), "at": at}
        is_identity = held.kind == "V"
        return self.db.table(
            kind, name=name, key=held.key, stored=held.stored, identity=is_identity, **options
        )

    def make(self, number: int, life: Life) -> Exception | None:
        """Make a view, a subscription, or both; return the exception, if any."""
        try:
            with interrupted(life.interrupt):
                return self._make(number, life)
        except (KeyboardInterrupt, OutOfTime):
            if number in self.live:
                return None
        return self._make(number, life)

    def _make(self, number: int, life: Life) -> Exception | None:
        node, how = life.node, life.how
        try:
            relation = relation_of(node, self.names, self.tables, self._known, shares=self._shares)
            view = relation.materialize() if "view" in how else None
            source, hearing = relation if view is None else view, None
            if "subscriber" in how:
                in_order = node.op == "order"
                hearing = Hearing(source, life.hears, self._elsewhere, in_order=in_order)
        except OutOfTime:
            raise
        except Exception as error:
            return error
        self.live[number] = Live(node, view, hearing)
        if view is not None and "again" in how:
            self._known[node.number] = view.relation
        return None

    def close(self, number: int, *, at_once: bool = True) -> None:
        """End a view; or only let go of it."""
        live = self.live.pop(number, None)
        if live is None:
            return
        self._known.pop(live.node.number, None)
        if live.hearing is not None:
            live.hearing.close()
        if live.view is not None and at_once:
            live.view.close()
        elif not at_once:
            del live
            gc.collect()  # tracebacks of refused commits may hold it

    def end(self) -> None:
        for number in [*self.live]:
            self.close(number)
        self._elsewhere.close()
        self.db.close()

    def commit(self, calls: Sequence[Call], step: Step, absent: Any) -> BaseException | None:
        """Make the calls of a commit; return the exception that was raised."""
        try:
            match step.where:
                case "thread":
                    writes = self._elsewhere.writes
                    writes.submit(self._commit_there, calls, step, absent).result()
                case "task":
                    self._elsewhere.run(self._commit_later(calls, step, absent))
                case _:
                    with interrupted(step.interrupt):
                        self._commit(calls, step, absent)
        except (KeyboardInterrupt, OutOfTime):
            error: Exception | None = OutOfTime()  # the traceback would hold the transaction
        except Exception as raised:
            return raised
        else:
            return None
        with self.db.transaction():
            pass  # reports the remaining changes
        return error

    def _commit(self, calls: Sequence[Call], step: Step, absent: Any) -> None:
        if step.single and len(calls) == 1 and not step.aborts and absent is None:
            self._call(calls[0])
            return
        with self.db.transaction():
            for place, call in enumerate(calls):
                if step.nests and place % 2:
                    with self.db.transaction():
                        self._call(call)
                else:
                    self._call(call)
            if absent is not None:
                self.tables[step.refused or 0].remove(absent)
            if step.aborts:
                raise Aborted

    def _commit_there(self, calls: Sequence[Call], step: Step, absent: Any) -> None:
        with thrown_into(step.interrupt):
            self._commit(calls, step, absent)

    async def _commit_later(self, calls: Sequence[Call], step: Step, absent: Any) -> None:
        """Make the calls as a task, while other tasks see the former rows."""
        before = self._shown()
        async with self.db.transaction():
            for place, call in enumerate(calls):
                if step.nests and place % 2:
                    async with self.db.transaction():
                        self._call(call)
                else:
                    self._call(call)
                await asyncio.create_task(self._sees(before))
            if absent is not None:
                self.tables[step.refused or 0].remove(absent)
            if step.aborts:
                raise Aborted

    async def _sees(self, before: list[Counter[Any]]) -> None:
        after = self._shown()
        if after != before:
            raise Difference(f"{self.name}: seen in a transaction: {after}, not {before}")

    def _shown(self) -> list[Counter[Any]]:
        """Return the rows of tables and views."""
        views = [live.view for live in self.live.values() if live.view is not None]
        return [*self.rows(), *map(bag, views)]

    def _call(self, call: Call) -> None:
        verb, place, arguments = call
        if verb == "advance":
            self.db.clock.advance(*arguments)
        elif verb == "set":
            self._parameters[place].set(*arguments)
        else:
            self._change(verb, place, arguments)

    def _change(self, verb: str, place: int, arguments: tuple[Any, ...]) -> None:
        getattr(self.tables[place], verb)(*arguments)

    def rows(self) -> list[Counter[Any]]:
        """Return the rows of the stored tables, and what stands beside them."""
        found = [
            bag(t) if h.stored else Counter() for t, h in zip(self.tables, self.held, strict=True)
        ]
        found += [bag(parameter) for parameter in self._parameters]
        return [*found, bag([self.db.clock.now])] if self._parameters else found

    def restore(self, model: Model) -> None:
        """Make up for a commit that was interrupted in this side only."""
        with self.db.transaction():
            if self._parameters:
                self.db.clock.advance(model.now)
            for parameter, value in zip(self._parameters, model.values, strict=False):
                parameter.set(value)
            for table, rows in zip(self.tables, model.tables, strict=True):
                table.replace_all(rows)

    def check(self, oracle: Oracle, random: Random, *, verify: bool) -> None:
        """The lock is free, and all views have the rows that the oracle has."""
        lock: Any = self.db._engine.db_lock.lock
        if lock._is_owned():
            raise Difference(f"{self.name}: the lock was not given back")
        for number, live in self.live.items():
            rows = oracle.rows(live.node)
            try:
                if live.view is not None:
                    _check_view(live.view, live.node, rows, oracle)
                    if verify and random.random() < 0.1:
                        _verify(live.view)
                if live.hearing is not None:
                    _check_hearing(live.hearing, live.node, rows, oracle)
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                raise Difference(f"{self.name}, plan {number}: {told}") from error


def _check_view(view: Any, node: Node, rows: Rows, oracle: Oracle) -> None:
    _same(bag(view), bag(rows))
    assert len(view) == len(rows), f"len is {len(view)}, of {len(rows)} rows"
    items: Counter[Any] = Counter()
    for row, weight in view.zset().items():
        items[frozen(row)] += weight
    _same(items, bag(rows))
    if node.op == "order":
        _check_order([*view], rows, node, oracle)
    if node.op == "group" and node.calls:
        _check_groups(view, rows)
    for row in rows[:1]:
        assert row in view and view.count(row) == bag(rows)[frozen(row)], f"{row!r} is not found"


def _check_groups(view: Any, rows: Rows) -> None:
    for key, *values in rows:
        found, expected = view[key], values[0] if len(values) == 1 else tuple(values)
        assert frozen(found) == frozen(expected), f"[{key!r}] is {found!r}, not {expected!r}"
    assert len(view.keys()) == len(rows)


def _check_order(found: Rows, rows: Rows, node: Node, oracle: Oracle) -> None:
    """Check the order of keys; rows of equal keys may have no order."""
    for of, _ in oracle.keyed(node):
        mine, theirs = [frozen(of(row)) for row in found], [frozen(of(row)) for row in rows]
        assert mine == theirs, f"in order {found}, not {rows}"
    _same(bag(found), bag(rows))


def _check_hearing(hearing: Hearing, node: Node, rows: Rows, oracle: Oracle) -> None:
    hearing.settle(bag(rows))
    assert hearing.error is None, f"the subscriber raised {hearing.error!r}"
    mirror = hearing.mirror
    mirror.check()
    _same(Counter({row: n for row, n in mirror.rows.items() if n}), bag(rows))
    if node.op == "order":
        _check_order(mirror.sequence, rows, node, oracle)


def _same(found: Counter[Any], expected: Counter[Any]) -> None:
    assert found == expected, f"missing {expected - found}, beyond that {found - expected}"


def _verify(view: Any) -> None:
    with suppress(TableError):  # of one that reads a table that keeps no rows
        view.verify()
