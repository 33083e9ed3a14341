"""Connections of psycopg and psycopg2, which would not tell that they have committed meanwhile.

    psycopg    the block is a `transaction()` of the connection: within it, `commit()` and
               `rollback()` are refused, and another `transaction()` is a savepoint
    psycopg2, and a transaction that is joined
               is marked in the server, by a setting that ends with it

State:  the block of psycopg; in the server, the setting.
Cost:   of psycopg none; of a mark a round trip when the block begins, and one at its end.
Source: psycopg 3, "Transaction contexts"; Postgres: `set_config`, of which `is_local` is true.
"""

from __future__ import annotations

from typing import Any

from reactive.borders.two_commits.others import Other, awaited, ended

MARK = "select set_config('reactive.block', 'open', true)"
MARKED = "select 1 where current_setting('reactive.block', true) = 'open'"
IDLE = 0
"""`PQTRANS_IDLE` of libpq: no transaction is open."""


class OfPsycopg(Other):
    """A `Connection`, an `AsyncConnection`, or one of psycopg2."""

    _block: Any = None
    """What `transaction()` has given, while it is open."""
    _is_marked = False

    async def begin(self) -> None:
        self.refuse_autocommit(self.given)
        self.refuse_unready(self.given)
        if self._is_idle and hasattr(self.given, "transaction"):
            block = self.given.transaction()
            await awaited(block.__aenter__() if self.is_asynchronous else block.__enter__())
            self._block = block
        else:
            await self._rows(MARK)
            self._is_marked = True

    async def check(self) -> None:
        self.refuse_unready(self.given)
        if self._is_idle or (self._is_marked and not await self._rows(MARKED)):
            raise ended(self)

    async def commit(self) -> None:
        self.refuse_unready(self.given)  # a block whose connection is lost ends without an error
        if self._block is None:
            await super().commit()
        else:
            await self._leave(None)

    async def rollback(self) -> None:
        if self._block is None:
            await super().rollback()
        else:
            await self._leave(_RolledBack())

    async def _leave(self, error: Exception | None) -> None:
        block, self._block = self._block, None
        leave = block.__aexit__ if self.is_asynchronous else block.__exit__
        await awaited(leave(None if error is None else type(error), error, None))

    @property
    def _is_idle(self) -> bool:
        return bool(self.given.info.transaction_status == IDLE)

    async def _rows(self, statement: str) -> int:
        """How many rows a query gives; they may be of any class."""
        cursor = self.given.cursor()
        try:
            await awaited(cursor.execute(statement))
            return len(await awaited(cursor.fetchall()))
        finally:
            await awaited(cursor.close())


class _RolledBack(Exception):
    """What the block is told."""
