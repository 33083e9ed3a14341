"""The changes of a view that is elsewhere, for a target that reads them there.

    rows of when it began, then what flushes come to  -->  take: no row of it comes by here

What is taken stays where it is until it is written: who cannot write it takes it again.

State:  none of the rows.
Cost:   O(1) here.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

from reactive.engine.remote.following import Following
from reactive.engine.remote.remote_operator import RemoteOperator


class Changes(Protocol):
    """Where a sink has the changes of a view from: `Gathered` in the process, or `Followed`."""

    @property
    def is_sure(self) -> bool:
        """Whether all that has changed since it began is there."""
        ...

    @property
    def has_moved(self) -> bool:
        """Whether it cannot go on, as the view is somewhere else now."""
        ...

    def begin(self) -> Any:
        """The rows of now, from which on changes count."""
        ...

    def first(self, changes: Any) -> None:
        """What is to be taken before what changes from now on."""
        ...

    def take(self) -> Any:
        """What has changed; empty or None if nothing has."""
        ...

    def reached(self, version: int) -> int:
        """The commit that it is up to date through, if a flush has been done of `version`."""
        ...

    def put_back(self, changes: Any) -> None:
        """What was taken is not written."""
        ...

    def written(self) -> None:
        """What was taken is written."""
        ...

    def doubt(self) -> None:
        """Some of it may be missing."""
        ...

    def waiting(self) -> tuple[float | None, int | None]:
        """For how many seconds something has waited, and how many changes do."""
        ...

    def end(self) -> None:
        """There is nobody to write it any more."""
        ...


class Followed:
    """The changes of a view, where its rows are.

    Parameters
    ----------
    operator: whose output is the view; it `is_followable`.
    """

    def __init__(self, operator: RemoteOperator) -> None:
        self.operator = operator
        self._following: Following | None = None
        self._is_sure = False
        self._first: Any = None
        self._since: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether all that has changed is there."""
        return self._is_sure and self._following is not None and not self._following.is_over

    @property
    def has_moved(self) -> bool:
        """Whether what it reads is not there any more."""
        return self._following is not None and self._following.is_over

    def begin(self) -> Any:
        """The rows of now, where they are."""
        self.end()
        self._following = self.operator.follow()
        self._is_sure, self._since = True, time.time()
        return self._following.rows()

    def first(self, changes: Any) -> None:
        """What is to be taken before what changes from now on."""
        self._first = changes

    def take(self) -> Any:
        """What has changed, which waits until it is written; None if nothing has."""
        assert self._following is not None
        later = self._following.changes()
        if self._first is None or later is None:
            return later if self._first is None else self._first
        return self._first.with_rows(later)

    def reached(self, version: int) -> int:
        """That of the flush."""
        return version

    def put_back(self, changes: Any) -> None:
        """It has not gone."""

    def written(self) -> None:
        """What was taken is written."""
        assert self._following is not None
        self._following.forget()
        self._first, self._since = None, time.time()

    def doubt(self) -> None:
        """It has to begin again."""
        self._is_sure = False

    def waiting(self) -> tuple[float | None, int | None]:
        """For how many seconds something may have waited at most, and how many changes do."""
        following = self._following
        if not self.is_sure or following is None:
            return None, None
        waits = following.waiting + (0 if self._first is None else self._first.rows)
        since = self._since if waits and self._since else None
        return None if since is None else max(0.0, time.time() - since), waits

    def end(self) -> None:
        """Read no more."""
        self._is_sure, self._first = False, None
        if self._following is not None:
            self._following.close()
