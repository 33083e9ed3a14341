"""The protocol of what gives rows.

    for batch in source.batches(since, stop):  -->  one commit, and with it `batch.token`

That is all. A generator function is a source too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from optimizer.errors import PlanError
from reactive.borders.sources.batch import Batch, Token

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

Batches: TypeAlias = Callable[[Any, threading.Event], Iterable[Batch[T]]]
"""As `Source.batches`."""


class Source(Protocol[T_co]):
    """What gives rows, in batches; `Database.ingest` makes a commit of each.

    A source may also have a method `waiting() -> int | None`, which says how many changes it knows
    of that it has not given yet; `None` if it cannot tell. It is called by any thread; so is
    `behind() -> int | None`, bytes of a log; and `trouble() -> Exception | None`, which says why it
    waits for a server that does not answer. A method `feeds(tables)` is told the tables that it
    feeds, by the classes of their rows, before it is run; `stopped_by(error)` what has stopped it,
    or `None`; `begin_anew()` that its next `batches` are to read all rows, in spite of `since`.

    >>> import threading
    >>> from reactive import Batch, Database
    >>> class Lines:
    ...     name = "lines"
    ...     def __init__(self, lines):
    ...         self.lines = lines
    ...     def batches(self, since, stop):
    ...         for number in range(since or 0, len(self.lines)):
    ...             yield Batch([self.lines[number]], token=number + 1)
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> db.ingest(Lines(["to", "be"]), words).wait()
    >>> list(words), db.tokens
    (['to', 'be'], {'lines': 2})
    """

    @property
    def name(self) -> str:
        """What it is called; its token is kept by this name."""
        ...

    def batches(self, since: Token, stop: threading.Event) -> Iterable[Batch[Any]]:
        """The batches from a token on; from the beginning, if it is `None`.

        The next batch is asked for when the last one is committed. Whoever waits here for something
        waits for `stop` as well, or looks at it every now and then, and ends once it is set. What
        this raises stops the source.
        """
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """A generator function as a source."""

    name: str
    batches: Batches[Any]


def as_source(
    source: Source[T] | Batches[T] | None, name: str | None
) -> tuple[Source[T] | None, str]:
    """A source, if there is one, and its name.

    Raises
    ------
    PlanError: it is none, or has no name.
    """
    if source is not None and not callable(getattr(source, "batches", None)):
        if not callable(source):
            raise PlanError(
                f"ingest takes a source, not {source!r:.100}\n"
                "  a function (since, stop) -> batches, or an object with `name` and `batches`; "
                "from_rows(rows) gives rows in batches"
            )
        source = Named(getattr(source, "__name__", "") if name is None else name, source)
    called = getattr(source, "name", None) if name is None else name
    if not isinstance(called, str) or not called or called == "<lambda>":
        raise PlanError(
            f"a source needs a name, by which its token is kept, and {called!r} is none\n"
            '  give it one: db.ingest(source, table, name="...")'
        )
    return source, called  # type: ignore[return-value]
