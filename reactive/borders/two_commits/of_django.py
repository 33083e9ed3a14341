"""A connection of Django, by its alias or itself: `transaction.atomic` around the block.

The block is the outermost `atomic` of its connection, as only the end of that commits. Functions
given to `transaction.on_commit` run when Django has committed, before views are published; what
they raise comes after both commits.

State:  the `atomic` that is open.
Source: Django 5, "Database transactions".
"""

from __future__ import annotations

from sys import exc_info, modules
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.two_commits.others import Other, refused
from reactive.errors import TransactionError


class OfDjango(Other):
    """A connection of this thread, by its alias."""

    def __init__(self, alias: str) -> None:
        super().__init__(modules["django.db"].connections[alias])
        self._alias = alias
        self._atomic: Any = None

    @property
    def identity(self) -> Any:
        return self._alias

    @property
    def is_local(self) -> bool:  # type: ignore[override]
        return bool(self.given.vendor == "sqlite")

    @property
    def is_asynchronous(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"Django's connection {self._alias!r}"

    async def begin(self) -> None:
        atomic = modules["django.db.transaction"].Atomic(self._alias, True, True)
        try:
            atomic.__enter__()
        except RuntimeError as error:
            raise TransactionError(
                f"{self} is inside an atomic() that was there before, and commits at the end of "
                "that one only\n"
                "  begin with `with db.transaction(commit_with=...)`, and use atomic() inside it; "
                "a view of a request with ATOMIC_REQUESTS is to be non_atomic_requests"
            ) from error
        self._atomic, self.is_acknowledged = atomic, False
        self.given.on_commit(self._note)

    def _note(self) -> None:
        self.is_acknowledged = True

    async def check(self) -> None:
        if self.given.needs_rollback:
            raise TransactionError(
                f"{self} was not committed: an error in an atomic() has marked it for rollback\n"
                "  nothing has changed, here or there; let the exception pass"
            )

    async def commit(self) -> None:
        atomic, self._atomic = self._atomic, None
        atomic.__exit__(None, None, None)

    async def rollback(self) -> None:
        atomic, self._atomic = self._atomic, None
        if atomic is None:  # its end has done that
            return
        try:
            raise _RolledBack
        except _RolledBack:
            atomic.__exit__(*exc_info())


class _RolledBack(Exception):
    """What `atomic` is told."""


def other(given: Any) -> Other:
    """What is committed of an alias, a connection, or an `atomic` that is not entered."""
    if "django.db" not in modules:
        raise PlanError(
            f"commit_with={given!r:.100} is the alias of a connection of Django, which is not "
            "imported\n  give a connection or a session of what you use"
        )
    alias = given if isinstance(given, str) else _alias(given)
    if alias is None:
        raise refused(given)
    connections = modules["django.db"].connections
    if alias not in connections:
        raise PlanError(
            f"Django has no connection {alias!r}\n  there are: {', '.join(map(repr, connections))}"
        )
    return OfDjango(alias)


def _alias(given: Any) -> str | None:
    """That of a connection, of the proxy `django.db.connection`, or of an `Atomic`."""
    if hasattr(given, "durable") and hasattr(given, "using"):
        return given.using or "default"
    found = getattr(given, "_alias", None) or getattr(given, "alias", None)
    return found if isinstance(found, str) else None
