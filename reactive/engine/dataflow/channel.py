"""A channel: whoever wants to hear of a leaf's changes, and under what name it goes in messages."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from optimizer import plan
from optimizer.callables.source import Place
from optimizer.expressions.naming import Nesting
from optimizer.plans.binding_names import written_names
from optimizer.plans.properties import groups, key_of_group, naming, table_key
from reactive.engine.collections import nested_edits
from reactive.engine.collections.edits import Edit
from reactive.engine.collections.zset import Pairs, Row
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.moves import Lineage


class Subscriber(Protocol):
    """Who hears of a channel's changes."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...


class Channel:
    """Subscriptions are known weakly: one that nobody holds ends.

    `subscribers` is replaced, never changed, so that a delta goes to those of its own commit.
    """

    __slots__ = (
        *("__weakref__", "base", "columns", "key", "lineage", "name", "place", "plan", "reason"),
        *("remedy", "subscribers"),
    )

    def __init__(self, node: plan.Node, name: str | None, place: Place) -> None:
        self.name = name
        self.place = place
        self.plan = node
        self.base = node
        """What is compiled in the place of the plan (`deferred.py`)."""
        self.key = _key_of_rows(node)
        self.columns = written_names(node)
        """The names of the bindings of its rows, if they have names."""
        self.lineage: Lineage | None = None
        """What follows updates of tables to here, while there are subscribers."""
        self.reason: str | None = None
        """Why it was closed, if not by its user."""
        self.remedy = "materialize its .relation again"
        """What to do once it is closed."""
        self.subscribers: tuple[weakref.ref[Any], ...] = ()

    def __str__(self) -> str:
        return f"the view made at {self.place}" if self.name is None else f"view {self.name!r}"

    def add(self, subscription: Subscriber) -> weakref.ref[Any]:
        reference = weakref.ref(subscription, self._remove)
        self.subscribers = (*self.subscribers, reference)
        return reference

    def discard(self, subscription: Subscriber) -> None:
        self.subscribers = tuple(r for r in self.subscribers if r() not in (None, subscription))
        self._look_after()

    def close(self) -> None:
        """End all subscriptions."""
        for reference in self.subscribers:
            subscription = reference()
            if subscription is not None:
                subscription.close()

    def snapshot(self, version: int, rows: Pairs, order: Iterable[Row] | None) -> Delta[Any]:
        """All rows of now, as a delta; `order` gives them in order if they have one."""
        edits = [Edit(position, row, 1) for position, row in enumerate(order or ())]
        found: Delta[Any] = Delta(version, rows, self.key, edits, is_snapshot=True)
        return found._with_columns(self.columns)

    def _remove(self, reference: weakref.ref[Any]) -> None:
        self.subscribers = tuple(r for r in self.subscribers if r is not reference)
        self._look_after()

    def _look_after(self) -> None:
        """Nobody is told of updates any more once nobody subscribes."""
        lineage = self.lineage
        if lineage is not None and not self.subscribers:
            self.lineage = None
            lineage.end()


def _key_of_rows(node: plan.Node) -> Callable[[Row], Any] | None:
    """What identifies a row, so that a changed one can be told as an update."""
    nesting = naming(node)
    if isinstance(nesting, Nesting) and isinstance(node, plan.Select | plan.OrderBy):
        return nested_edits.NestedKey(nesting, is_ordered=isinstance(node, plan.OrderBy))
    table = table_key(node)
    if table is not None and table.key is not None:
        return table.key.function
    aggregate = groups(node)
    if aggregate is None:
        return None
    return key_of_group(node) if aggregate.key is not None else _only


def _only(row: Row) -> Any:
    return ()
