"""What a source gives: changes that belong together, and where to go on after them.

    Batch(upserts, deletes)     by key: rows that are there now, keys that are not any more
    Batch(upserts, removes)     without key: rows that come, rows that go
    Batch(origins={o: rows})    of each origin o, all of its rows: only the difference is a change
    Batch(appends={o: rows})    of each origin o, rows that it has beside those that it had

A batch says what is so after it, and not in which order it came about: a key that is both deleted
and upserted is upserted. Hence a batch that is made again changes nothing, if rows have keys or
origins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from optimizer.errors import PlanError

T = TypeVar("T")

Token: TypeAlias = Any
"""Where a source can go on: an offset, a position in a log, a time, a dictionary of any of them.
Two are compared by `==` only. It must not be changed once it is in a batch."""
OnRefusal: TypeAlias = Literal["raise", "drop"]
"""The policy for a row that a table refuses, or of which a view raises."""
Rows: TypeAlias = Collection[T] | Mapping[type, Collection[T]]
"""Rows; also grouped by their classes, which are those that `ingest` was told tables of."""
Keys: TypeAlias = Collection[Any] | Mapping[type, Collection[Any]]
"""Keys of a table; of several tables by the classes of their rows."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What a source has and can make no row of, and why.

    given: as it came; that which tells it apart in a table without key.
    key: of the row that it would be, in a table with a key.

    >>> Refused("1,x", ValueError("'x' is no number")).error
    ValueError("'x' is no number")
    """

    given: Any
    error: Exception
    key: Any = None


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """Changes of a source that become one commit.

    Parameters
    ----------
    upserts: rows that are there from now on. In a table with a key each takes the place of the row
        with its key, and of two with one key the last one counts; in a table without key each is
        one row more.
    deletes: keys whose rows are there no more; one that has none is passed over, and one that is
        among the `upserts` too is upserted.
    removes: rows of a table without key, each of which is there once less. A row that is among the
        `upserts` too neither comes nor goes.
    origins: origin -> all rows that come of it, such as those of a file. Rows that were of it and
        are not among these go. An empty collection says that the origin is gone. Rows of origins
        that are not named stay. In a table with a key, two origins cannot have a row of one key;
        of two rows of one origin the last one counts.
    appends: origin -> rows that come of it beside those that it has, such as lines at the end of a
        file. It costs these rows only. In a table with a key one of them may take the place of a
        row of the origin, at the cost of all of its rows.
    refused: origin -> what can be made no row of, beside the rows of `origins` or `appends`. It
        stops the source, or is in `Ingestion.errors` until all rows of the origin are given. Also
        class of rows -> what would be rows of it: it takes the place of the row of its key, and is
        in `errors` until its key is upserted or deleted; in a table without key, until `removes`
        has what was `given`.
    anew: classes of rows of which all that was left out, and is of no origin, is told again by this
        batch and those after it: a source that reads a table from its beginning says so first.
    token: where to go on after this batch; `None` leaves the last one.
    token_changes: of a token that is a dictionary, the entries that are others now, and None for
        those that are there no more. It costs these entries only.
    made: when the source had these changes, as `time.time()` tells; for `Ingestion.lag`.

    An empty batch is a commit too, if it has a token. Once given, what is in it must not change.

    >>> Batch(["to", "be"], token=2).upserts
    ['to', 'be']
    """

    upserts: Rows[T] = ()
    _: KW_ONLY
    deletes: Keys = ()
    removes: Rows[T] = ()
    origins: Mapping[Any, Rows[T]] = field(default_factory=dict)
    appends: Mapping[Any, Rows[T]] = field(default_factory=dict)
    refused: Mapping[Any, Collection[Refused]] = field(default_factory=dict)
    anew: Collection[type] = ()
    token: Token = None
    token_changes: Mapping[Any, Token] = field(default_factory=dict)
    made: float | None = None


def check_policy(on_error: object) -> None:
    """Raise `PlanError` for what is no policy."""
    if on_error not in ("raise", "drop"):
        raise PlanError(
            f"on_error={on_error!r} is no policy for rows that are refused\n"
            '  write "raise" or "drop"'
        )
