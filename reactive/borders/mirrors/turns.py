"""Waiting for the transaction of another one to end, before a session commits; not for ever.

    A    with db.transaction(commit_with=session): ...      waits for a row that B has changed
    B    session.commit()                                   waits for A's transaction to end

Neither system knows of the other one's lock. So B gives up after `PATIENCE` seconds, its SQL
transaction is rolled back, and A goes on.

Cost: nothing if nobody has a transaction open.
"""

from __future__ import annotations

import asyncio
import time
from threading import get_ident
from typing import Any

from sqlalchemy import util

from reactive.errors import TransactionError

PATIENCE = 10.0
"""Seconds that a commit waits for the transaction of another one."""
FIRST = 0.0002
LONGEST = 0.005
"""Seconds between two looks: the first time, and at most."""


def wait(db_lock: Any, *, is_async: bool) -> None:
    """Wait until nobody else has a transaction open; whoever begins first then has it.

    Raises
    ------
    TransactionError: that takes too long.
    """
    deadline, pause = time.monotonic() + PATIENCE, FIRST
    while db_lock.is_taken:
        if time.monotonic() > deadline:
            raise TransactionError(_TOO_LONG.format(PATIENCE))
        if is_async:
            util.await_only(asyncio.sleep(pause))
        else:
            if _is_of_this_loop(db_lock):
                return  # its task could never end it while this one waits: `begin` says so
            time.sleep(pause)
        pause = min(2 * pause, LONGEST)


def _is_of_this_loop(db_lock: Any) -> bool:
    owner = db_lock.owner
    return (db_lock.aside if owner is None else owner[0]) == get_ident()  # type: ignore[no-any-return]


_TOO_LONG = (
    "another transaction of the database has been open for {:g} seconds, for which this commit "
    "waits; it may wait itself for a row that this one has changed\n"
    "  nothing has changed, here or there; do it again, and keep transactions short"
)
