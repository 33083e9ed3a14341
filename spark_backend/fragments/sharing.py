"""Which fragments share what they keep: those of one database that read the same tables.

    by town       orders, customers  --+-- one state
    by client     orders, customers  --+
    towns         customers            --- another

A fragment goes to the state that holds its tables from an earlier process; else to the first that
has room, or a new one. One that holds tables of plans that nobody has come for has none, as
those would be lost. Recursions, which may take long, are by themselves.

State:  the states that are open.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from uuid import uuid4

from pyarrow import fs

from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import nodes, tables
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.whole import RECURSIONS
from spark_backend.cluster.files import located
from spark_backend.cluster.session import Session
from spark_backend.fragments.inputs import inputs_of
from spark_backend.fragments.members import name_of
from spark_backend.fragments.shared import SharedState
from spark_backend.state.checkpoint import ANEW

DIGITS = 24
Key = tuple[bool, tuple[int, ...]]


def may_share(fragment: Fragment) -> bool:
    """Whether a fragment is one of those that share."""
    return fragment.is_whole and not any(isinstance(n, RECURSIONS) for n in nodes(fragment.node))


@dataclass
class _Open:
    """A state that is open: of which database, and over which tables."""

    of: weakref.ref[object]
    key: Key
    folder: str
    state: SharedState


class SharingStates:
    """The states of a checkpoint that fragments share.

    Parameters
    ----------
    folder: of the checkpoint.
    """

    def __init__(self, session: Session, folder: str) -> None:
        self._session, self._folder = session, folder
        self._open: list[_Open] = []

    def place_for(
        self, fragment: Fragment, of: object, *, is_kept: bool
    ) -> tuple[str, SharedState]:
        """The state that a fragment is to share, and its folder.

        Parameters
        ----------
        of: the database.
        is_kept: whether a later process may go on with it.

        Raises
        ------
        NotColumns: it cannot be done in columns.
        OffloadError: what an earlier process left cannot be read.
        """
        self._open = [each for each in self._open if not each.state.is_closed]
        read = dict.fromkeys(table for node in fragment.inputs for table in tables(node))
        key = is_kept, tuple(sorted(table.number for table in read))
        digest = fingerprint("tables", sorted(map(fingerprint, read)))
        plan = name_of(fragment, inputs_of(self._session, fragment))
        free: _Open | None = None
        for each in self._candidates(key, of, digest):
            state = each.state.roster
            if each.key != key or each.of() is not of or state.has(plan) or not state.is_settled:
                continue
            if state.keeps(plan):
                return each.folder, each.state
            free = each if free is None and state.has_room else free
        found = free or self._begin(key, of, digest, self._unused(digest, is_kept=is_kept))
        return found.folder, found.state

    def _candidates(self, key: Key, of: object, digest: str) -> Iterator[_Open]:
        """The states that are open, and those that an earlier process left."""
        yield from tuple(self._open)
        if key[0]:
            open_now = {each.folder for each in self._open}
            for folder in self._folders(digest):
                if folder not in open_now:
                    if not self._is_there(folder):
                        return
                    yield self._begin(key, of, digest, folder)

    def _begin(self, key: Key, of: object, digest: str, folder: str) -> _Open:
        state = SharedState(self._session, folder, digest, stable=key[0])
        self._open.append(_Open(weakref.ref(of), key, folder, state))
        return self._open[-1]

    def _folders(self, digest: str) -> Iterator[str]:
        first = f"{self._folder}/{digest[:DIGITS]}"
        yield first
        yield from (f"{first}-{number}" for number in count(2))

    def _unused(self, digest: str, *, is_kept: bool) -> str:
        if not is_kept:
            return f"{self._folder}/{ANEW}{uuid4().hex}"
        open_now = {each.folder for each in self._open}
        return next(f for f in self._folders(digest) if f not in open_now and not self._is_there(f))

    def _is_there(self, folder: str) -> bool:
        found = located(folder, self._session)
        return bool(found.files.get_file_info(found.root).type != fs.FileType.NotFound)
