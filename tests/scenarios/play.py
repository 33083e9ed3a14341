"""Play a history on the tables of a query, and hold view, deltas and oracle together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from reactive import Database, Delta, OrderedView, Table
from reactive.api.view import AnyView
from tests.scenarios.histories import Event
from tests.scenarios.queries import Items, Query
from tests.scenarios.rows import FULL, SOME, Item


@dataclass(frozen=True)
class Side:
    """The one of two tables that plays a history, and the rows of the other."""

    name: str
    moves: tuple[bool, bool] = (True, False)
    standing: Sequence[Item] = ()
    same: bool = False


ONE = Side("only")
SIDES = (
    Side("left_of_some", (True, False), SOME),
    Side("left_of_full", (True, False), FULL),
    Side("right_of_some", (False, True), SOME),
    Side("right_of_full", (False, True), FULL),
    Side("itself", same=True),
    Side("both", (True, True)),
)


class Replica:
    """The state of a follower that receives only the deltas."""

    def __init__(self, view: AnyView) -> None:
        self.view = view
        self.rows: Counter[Any] = Counter(dict(view.zset().items()))
        self.order: list[Any] = list(view)
        self.total: Counter[Any] = Counter()
        self.deltas = 0
        self.subscription = view.subscribe(self._follow)

    def _follow(self, delta: Delta[Any]) -> None:
        self.deltas += 1
        assert delta.items() or delta.edits, "a delta without a change was sent"
        assert all(weight for _, weight in delta.items()), "a weight of zero was sent"
        for row, weight in delta.items():
            self.rows[row] += weight
            self.total[row] += weight
        for position, row, weight in delta.edits:
            if weight > 0:
                self.order.insert(position, row)
            else:
                assert self.order.pop(position) == row

    def check(self) -> None:
        """Check that the view is the sum of its deltas."""
        assert +self.rows == Counter(dict(self.view.zset().items()))
        assert min(self.rows.values(), default=0) >= 0
        if isinstance(self.view, OrderedView):
            assert self.order == list(self.view)

    def net(self) -> dict[Any, int]:
        """The sum of all deltas."""
        return {row: weight for row, weight in self.total.items() if weight}


class Stage:
    """Two tables, and a query over them."""

    def __init__(self, query: Query, side: Side) -> None:
        self.query = query
        self.side = side
        self.name = f"{query.name} {side.name}"
        self.db = Database()
        self.left = self.db.table(Item, name="left")
        self.right = self.left if side.same else self.db.table(Item, name="right")
        self.relation = query.build(self.left, self.right)


class Play:
    """A view of a stage's query, and the same rows in plain lists. Enter it with `with`."""

    def __init__(self, stage: Stage, start: Iterable[Item]) -> None:
        self.stage = stage
        self.query, self.side, self.db = stage.query, stage.side, stage.db
        self.model: tuple[Items, Items] = ([], [])
        self.moving = [n for n in (0, 1) if self.side.moves[n]]
        start = list(start)
        for n, table in enumerate(self.tables()[: 1 if self.side.same else 2]):
            self.model[n].extend(start if n in self.moving else self.side.standing)
            table.replace_all(self.model[n])
        self.view = stage.relation.materialize()
        self.replica = Replica(self.view)

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.replica.subscription.close()
        self.view.close()

    def tables(self) -> tuple[Table[Item], Table[Item]]:
        return self.stage.left, self.stage.right

    def do(self, event: Event) -> None:
        """One event, on the tables that move and on their models."""
        for n in self.moving:
            event.do(self.tables()[n])
            event.model(self.model[n])

    def singles(self, events: Iterable[Event]) -> None:
        """Make each event in commits of its own."""
        for event in events:
            self.do(event)
            self.check()

    def batch(self, events: Iterable[Event]) -> None:
        """All events in one commit."""
        with self.db.transaction():
            for event in events:
                self.do(event)
        self.check()

    def wanted(self) -> list[Any]:
        """Return the rows of the oracle."""
        left, right = self.model
        return list(self.query.oracle(left, left if self.side.same else right))

    def check(self) -> None:
        """View, oracle, evaluation from scratch and replica agree."""
        wanted = self.wanted()
        assert Counter(dict(self.view.zset().items())) == Counter(wanted)
        assert len(self.view) == len(wanted)
        if self.query.ordered:
            assert list(self.view) == wanted
        self.view.verify()
        self.replica.check()
