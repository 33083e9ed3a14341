"""Sessions and connections of SQLAlchemy, synchronous or not; also those of SQLModel and Flask.

A session takes its connection when the block begins, if it has one engine: then a statement that
commits by itself cannot come before it is refused. A session of several engines commits in one
after the other, so it is refused when it has used more than one, unless it is `twophase`.

State:  none.
Source: SQLAlchemy 2, "Session Basics" and "Working with Engines and Connections".
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from sys import modules
from typing import Any

from reactive.borders.two_commits.others import Other, awaited, ended, refused
from reactive.errors import TransactionError


class OfConnection(Other):
    """A `Connection` or `AsyncConnection`."""

    _joined: Any = None
    """The transaction that it has when the block begins."""

    @property
    def identity(self) -> Any:
        return getattr(self.given, "sync_connection", None) or self.given

    @property
    def is_local(self) -> bool:  # type: ignore[override]
        return bool(self.identity.dialect.name == "sqlite")

    async def begin(self) -> None:
        self._refuse_autocommit(self.identity)
        if not self.identity.in_transaction():
            await awaited(self.given.begin())  # sends nothing
        self._joined = self.identity.get_transaction()

    async def check(self) -> None:
        self._refuse_ended()
        await self._check(self.identity)

    def _refuse_ended(self) -> None:
        if self._joined is not None and self.identity.get_transaction() is not self._joined:
            raise ended(self)

    def _refuse_autocommit(self, connection: Any) -> None:
        if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
            raise TransactionError(
                f"{self} cannot commit with the tables: its isolation level is AUTOCOMMIT, so each "
                "statement is committed by itself, and nothing could be taken back\n"
                "  give one of an engine without that"
            )
        self.refuse_autocommit(_driver(connection))

    async def _check(self, connection: Any) -> None:
        if connection.invalidated:
            raise TransactionError(
                f"{self} was not committed: its connection was lost\n"
                "  nothing has changed, here or there; do it again"
            )
        driver = _driver(connection)
        self.refuse_unready(driver)
        if connection.dialect.name == "postgresql" and not hasattr(driver, "info"):
            await self._ask()  # this driver does not tell whether a statement has failed

    async def gather(self, mirrors: Iterable[Any]) -> None:
        for connection in list(self._connections()):
            for mirror in mirrors:
                if mirror.follows(connection):
                    if self.is_asynchronous:
                        await modules["sqlalchemy.util"].greenlet_spawn(mirror.gather, connection)
                    else:
                        mirror.gather(connection)

    def _connections(self) -> Iterable[Any]:
        """Those that it commits."""
        return [self.identity]

    async def _ask(self) -> None:
        await awaited(self.given.exec_driver_sql("select 1"))


class OfSession(OfConnection):
    """A `Session` or `AsyncSession`."""

    @property
    def identity(self) -> Any:
        return getattr(self.given, "sync_session", None) or self.given

    @property
    def is_local(self) -> bool:  # type: ignore[override]
        used = list(self._connections())
        return all(connection.dialect.name == "sqlite" for connection in used)

    async def begin(self) -> None:
        try:
            connection: Any = await awaited(self.given.connection())
        except modules["sqlalchemy.exc"].UnboundExecutionError:  # each class has an engine
            return
        finally:
            self._joined = self.identity.get_transaction()
        self._refuse_autocommit(getattr(connection, "sync_connection", None) or connection)

    async def flush(self) -> None:
        await awaited(self.given.flush())

    async def check(self) -> None:
        self._refuse_ended()
        if self.identity.in_nested_transaction():
            raise TransactionError(
                f"{self} was not committed: it has a savepoint open, of begin_nested()\n"
                "  nothing has changed, here or there; end it within the block"
            )
        used = list(self._connections())
        if len(used) > 1 and not self.identity.twophase:
            engines = ", ".join(sorted(str(connection.engine.url) for connection in used))
            raise TransactionError(
                f"{self} was not committed: it has used several databases ({engines}), which "
                "commit one after the other, and the second may refuse when the first has "
                "committed\n  nothing has changed, here or there; use a session for each, or one "
                "with twophase=True"
            )
        for connection in used:
            self._refuse_autocommit(connection)
            await self._check(connection)

    async def commit(self) -> None:
        events, session = modules["sqlalchemy.event"], self.identity
        self.is_acknowledged, self.was_sent = False, True
        used = list(self._connections())
        events.listen(session, "after_commit", self._note, insert=True)
        try:
            await awaited(self.given.commit())
        except BaseException:
            self.was_sent = not all(connection.in_transaction() for connection in used)
            raise
        finally:
            events.remove(session, "after_commit", self._note)

    def _note(self, session: Any) -> None:
        self.is_acknowledged = True

    async def _ask(self) -> None:
        await awaited(self.given.execute(modules["sqlalchemy"].text("select 1")))

    def _connections(self) -> Iterable[Any]:
        """Those that it commits."""
        transaction = self.identity.get_transaction()
        used = {} if transaction is None else transaction._connections
        return {id(found[0]): found[0] for found in used.values()}.values()


def other(given: Any, names: Set[str]) -> Other:
    """What is committed of a session or a connection."""
    if names & {"scoped_session", "async_scoped_session"}:
        given = given()
        names = frozenset(kind.__name__ for kind in type(given).__mro__)
    if names & {"Session", "AsyncSession"}:
        return OfSession(given)
    if names & {"Connection", "AsyncConnection"}:
        return OfConnection(given)
    if names & {"Transaction", "AsyncTransaction"}:
        return OfConnection(given.connection)
    raise refused(given)


def _driver(connection: Any) -> Any:
    """The connection of the driver; of one that is not asynchronous itself the one it wraps."""
    found = connection.connection
    return getattr(found, "driver_connection", None) or found.dbapi_connection
