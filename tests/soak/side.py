"""A database that a history is played in, with its views and what their subscribers hear."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from reactive import Database, TableError
from tests.soak.build import Build
from tests.soak.histories import Held, Step
from tests.soak.interrupts import OutOfTime, interrupted
from tests.soak.mirror import Mirror
from tests.soak.nodes import Node
from tests.soak.oracle import Oracle, Rows
from tests.soak.rows import CLASSES, bag, frozen
from tests.soak.statements import Call


class Aborted(Exception):
    """Ends a transaction."""


class Difference(Exception):
    """The library does something else than the oracle."""


@dataclass
class Live:
    """A plan that is a view, has a subscriber, or both."""

    node: Node
    view: Any
    mirror: Mirror | None
    subscription: Any


class Side:
    """Plays calls, and compares what there is with an oracle."""

    def __init__(
        self,
        name: str,
        names: Mapping[str, Any],
        tables: Sequence[Held],
        *,
        optimize: bool,
        strict: bool,
        shares: bool,
    ) -> None:
        self.name = name
        self.db = Database(optimize=optimize, strict=strict)
        self.held = tables
        self.tables: list[Any] = [
            self.db.table(
                CLASSES[held.kind],
                name=f"t{i}",
                key=held.key,
                stored=held.stored,
                identity=held.kind == "V",
            )
            for i, held in enumerate(tables)
        ]
        self._build = Build(names, self.tables, shares=shares)
        self.live: dict[int, Live] = {}

    def make(self, number: int, node: Node, how: str, interrupt: int | None) -> Exception | None:
        """Make a view, a subscription, or both; what that raised."""
        try:
            with interrupted(interrupt):
                return self._make(number, node, how)
        except (KeyboardInterrupt, OutOfTime):
            if number in self.live:
                return None
        return self._make(number, node, how)

    def _make(self, number: int, node: Node, how: str) -> Exception | None:
        try:
            relation = self._build.relation(node)
            view = relation.materialize() if "view" in how else None
            mirror = Mirror(in_order=node.op == "order") if "subscriber" in how else None
            source = relation if view is None else view
            heard = mirror and source.subscribe(mirror.receive, snapshot=True)
        except OutOfTime:
            raise
        except Exception as error:
            return error
        self.live[number] = Live(node, view, mirror, heard)
        if view is not None and "again" in how:
            self._build.known[node.number] = view.relation
        return None

    def close(self, number: int, *, at_once: bool = True) -> None:
        """End a view; or only let go of it."""
        live = self.live.pop(number, None)
        if live is None:
            return
        self._build.known.pop(live.node.number, None)
        if live.subscription is not None:
            live.subscription.close()
        if live.view is not None and at_once:
            live.view.close()
        elif not at_once:
            del live
            gc.collect()  # tracebacks of refused commits may hold it

    def end(self) -> None:
        for number in [*self.live]:
            self.close(number)
        self.db.close()

    def commit(self, calls: Sequence[Call], step: Step, absent: Any) -> BaseException | None:
        """Make the calls of a commit; what was raised."""
        try:
            with interrupted(step.interrupt):
                self._commit(calls, step, absent)
        except (KeyboardInterrupt, OutOfTime):
            error: Exception | None = OutOfTime()  # the traceback would hold the transaction
        except Exception as raised:
            return raised
        else:
            return None
        with self.db.transaction():
            pass  # tells what was still to be told
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

    def _call(self, call: Call) -> None:
        verb, place, arguments = call
        getattr(self.tables[place], verb)(*arguments)

    def rows(self) -> list[Counter[Any]]:
        """What the tables have that keep their rows."""
        return [
            bag(t) if h.stored else Counter() for t, h in zip(self.tables, self.held, strict=True)
        ]

    def check(self, oracle: Oracle, random: Random, *, verify: bool) -> None:
        """All views have the rows that the oracle has."""
        for number, live in self.live.items():
            rows = oracle.rows(live.node)
            try:
                if live.view is not None:
                    _check_view(live.view, live.node, rows, oracle)
                    if verify and random.random() < 0.1:
                        _verify(live.view)
                if live.mirror is not None:
                    _check_mirror(live, rows, oracle)
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                raise Difference(f"{self.name}, plan {number}: {told}") from error


def _check_view(view: Any, node: Node, rows: Rows, oracle: Oracle) -> None:
    _same(bag(view), bag(rows))
    assert len(view) == len(rows), f"len is {len(view)}, of {len(rows)} rows"
    items: Counter[Any] = Counter()
    for row, weight in view.items():
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
        found = view[key]
        expected = values[0] if len(values) == 1 else tuple(values)
        assert frozen(found) == frozen(expected), f"[{key!r}] is {found!r}, not {expected!r}"
    assert len(view.keys()) == len(rows)


def _check_order(found: Rows, rows: Rows, node: Node, oracle: Oracle) -> None:
    """In order of keys; where keys are equal rows may have no order, and stand as they came."""
    for of, _ in oracle.keyed(node):
        mine, theirs = [frozen(of(row)) for row in found], [frozen(of(row)) for row in rows]
        assert mine == theirs, f"in order {found}, not {rows}"
    _same(bag(found), bag(rows))


def _check_mirror(live: Live, rows: Rows, oracle: Oracle) -> None:
    mirror = live.mirror
    assert mirror is not None
    assert live.subscription.error is None, f"the subscriber raised {live.subscription.error!r}"
    mirror.check()
    _same(Counter({row: n for row, n in mirror.rows.items() if n}), bag(rows))
    if live.node.op == "order":
        _check_order(mirror.sequence, rows, live.node, oracle)


def _same(found: Counter[Any], expected: Counter[Any]) -> None:
    assert found == expected, f"missing {expected - found}, beyond that {found - expected}"


def _verify(view: Any) -> None:
    with suppress(TableError):  # of one that reads a table that keeps no rows
        view.verify()
