"""Changes that a function is called with, each batch until the function has returned.

    outbox: batch n is kept  -->  function(n, changes)  -->  outbox: n is delivered

A function that raises, or a process that ends, leaves the batch in the outbox: the function is
called with it again, the same changes under the same number. So one that takes note of the number
together with what it does has each batch once.

State:  that of the outbox.
Cost:   O(changes), written once before the call.
Source: the transactional outbox of message brokers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.sinks.target import Called, ChangeBatch, Changed, Outbox, Position
from reactive.engine.collections.zset import Pair, consolidate, integrate, negate
from reactive.engine.dataflow.delta import Delta, NumberedDelta


class CalledTarget:
    """A `Target` that calls a function."""

    def __init__(self, function: Called, outbox: Outbox) -> None:
        self._function = function
        self._outbox = outbox
        self.kept_as: str | None = getattr(outbox, "name", None)
        """The name under which the database keeps what was told, if it does."""

    def open(self, plan: str) -> Position | None:
        """Return the position of the outbox; None if nothing was kept yet."""
        return self._outbox.open(plan)

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What the function has not been told of these rows."""
        return self._outbox.difference(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        self._outbox.stage(batch)

    def deliver(self) -> None:
        """Call the function with the batch that is kept, if there is one."""
        batch = self._outbox.staged()
        if batch is not None:
            self._tell(batch)
            self._outbox.delivered()

    def _tell(self, batch: ChangeBatch) -> None:
        self._function(batch.number, list(batch.changes))

    def forget(self) -> None:
        """Keep no more what was told.

        Raises
        ------
        PlanError: it is not kept in a durable database.
        """
        forget = getattr(self._outbox, "forget", None)
        if forget is None:
            raise PlanError(
                "cannot forget what a sink has told: it is not kept in a durable database\n"
                "  stop() it: what it has told goes with the process"
            )
        forget()


class ToldTarget(CalledTarget):
    """A `Target` that calls a callback with deltas. Batch 0 is the rows of the beginning.

    Parameters
    ----------
    name: of the subscription.
    key: what identifies a row, if something does.
    columns: the names of the bindings of rows, if they have names.
    snapshot: whether the callback is told of batch 0.
    """

    def __init__(
        self,
        callback: Callable[[Delta[Any]], object],
        outbox: Outbox,
        name: str,
        key: Callable[[Any], Any] | None,
        columns: Sequence[str] | None,
        *,
        snapshot: bool,
    ) -> None:
        super().__init__(lambda number, changes: None, outbox)
        self.kept_as = name
        self._callback, self._key, self._snapshot = callback, key, snapshot
        self._columns = columns
        self.is_owed = False
        """True until there is a batch 0, which may have no rows."""

    def open(self, plan: str) -> Position | None:
        """Return the position of the outbox; None if nothing was kept yet."""
        found = super().open(plan)
        self.is_owed = found is None
        return found

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        super().stage(batch)
        self.is_owed = False

    def _tell(self, batch: ChangeBatch) -> None:
        if batch.number == 0 and not self._snapshot:
            return
        delta = NumberedDelta[Any](batch.number, batch.version, list(batch.changes), self._key)
        result = self._callback(delta._with_columns(self._columns))
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(
                f"cannot await {result.__qualname__}(), which the callback of subscription "
                f"{self.kept_as!r} gave\n  give it a function that is not asynchronous"
            )


class MemoryOutbox:
    """An `Outbox` that lives as long as the process."""

    def __init__(self) -> None:
        self._rows: dict[object, int] = {}
        self._staged: ChangeBatch | None = None
        self._position: Position | None = None

    def open(self, plan: str) -> Position | None:
        """Where it is."""
        return self._position

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What has not been staged."""
        return consolidate([*rows, *negate(self._rows.items())])

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        integrate(self._rows, batch.changes)
        self._staged, self._position = batch, batch.position

    def staged(self) -> ChangeBatch | None:
        """The batch that was kept last, if it is not delivered."""
        return self._staged

    def delivered(self) -> None:
        """Forget it."""
        self._staged = None
