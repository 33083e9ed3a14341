"""Which engines the sessions of a factory write to."""

from __future__ import annotations

import sys
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Session

from optimizer.errors import PlanError
from reactive.borders.mirrors.kinds import Kind


def engines_of(given: Any, kinds: list[Kind]) -> list[Engine]:
    """The engine of each of the kinds.

    Parameters
    ----------
    given: a `sessionmaker`, `async_sessionmaker`, `scoped_session`, or an engine.

    Raises
    ------
    PlanError: it is none of these, or has no engine for a class.
    """
    given = _synchronous(given)
    if isinstance(given, Session):
        raise PlanError(
            f"cannot mirror one session: {given!r:.100} is a session, and others write too\n"
            "  give what makes sessions: sessionmaker(engine), or the engine itself"
        )
    if isinstance(given, Engine):
        return [_root(given)] * len(kinds)
    session = _session(given)
    try:
        return [_root(_bind(session, kind).engine) for kind in kinds]
    except UnboundExecutionError as error:
        raise PlanError(
            f"mirror: sessions of {given!r:.100} have no engine\n"
            "  give sessionmaker(engine), or the engine itself"
        ) from error


def _session(given: Any) -> Session:
    """One of its sessions, which is not begun."""
    if callable(given):
        given = _synchronous(getattr(given, "session_factory", given)())
    if not isinstance(given, Session):
        raise PlanError(
            f"mirror takes what makes sessions, not {given!r:.100}\n"
            "  write mirror(db, Session, Order), with Session = sessionmaker(engine)"
        )
    return given


def _synchronous(given: Any) -> Any:
    """The engine or session inside an asynchronous one; anything else as it is.

    Their module needs greenlet, which SQLAlchemy installs only where it is asked for. Who has made
    one of them has imported it.
    """
    asynchronous = sys.modules.get("sqlalchemy.ext.asyncio")
    if asynchronous is None:
        return given
    if isinstance(given, asynchronous.AsyncEngine):
        return given.sync_engine
    if isinstance(given, asynchronous.AsyncSession):
        return given.sync_session
    return given


def _bind(session: Session, kind: Kind) -> Engine | Connection:
    if isinstance(kind.owner, type):
        return session.get_bind(kind.owner)
    return session.get_bind(clause=kind.owner)


def _root(engine: Engine) -> Engine:
    """The engine itself, of one that has other options: both use the same connections."""
    while (proxied := getattr(engine, "_proxied", None)) is not None:
        engine = proxied
    return engine
