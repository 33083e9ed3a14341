"""A subscription with a name: a durable database knows what it was told, after a restart too.

    commit --> delta n is kept in the file --> callback(delta n) --> delta n was taken

A delta whose callback has raised, or during which the process ended, comes again: the same rows
under the same number. What commits change meanwhile is the next one.

State:  that of the sink, by which it is told.
Cost:   a commit that changes the rows takes a sync of the disk more in a durable database.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

from optimizer.errors import PlanError
from reactive.api.subscriptions.relay import is_loop
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import Closeable
from reactive.engine.runtime.copying import NotCopied
from reactive.engine.runtime.foreign_names import OF_SUBSCRIPTIONS
from reactive.engine.runtime.name_hints import hint

T = TypeVar("T", default=Any)


class Told(Protocol):
    """The sink that calls the callback, as far as a subscription asks it."""

    @property
    def state(self) -> str: ...
    @property
    def error(self) -> BaseException | None: ...
    @property
    def position(self) -> Any: ...
    def flush(self) -> object: ...
    def stop(self) -> object: ...
    def forget(self) -> object: ...


@boundary
class NamedSubscription(NotCopied, Closeable, Generic[T]):
    """A subscription with a name, which `subscribe(callback, name=)` returns.

    It goes on if nobody holds it, until it, its view or the database is closed. The next one of the
    name is told what has changed since, its commits by other processes too.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> watching = words.subscribe(lambda delta: print(delta.number, delta.added), name="print")
    >>> words.add("to")
    1 ('to',)
    >>> print(watching.position)
    batch 1, through commit 1
    >>> watching.close()
    """

    def __init__(self, name: str, told: Told) -> None:
        self.name = name
        self._told = told

    @property
    def closed(self) -> bool:
        """True once the callback is called no more."""
        return self._told.state == "stopped"

    @property
    def error(self) -> BaseException | None:
        """The exception that the callback raised for the last delta, which comes again."""
        return self._told.error

    @property
    def position(self) -> Any:
        """The number of the last delta, and the commit that it is up to date through."""
        return self._told.position

    def flush(self) -> None:
        """Tell what waits, now: what the callback has raised is raised here."""
        self._told.flush()

    def forget(self) -> None:
        """Close it, and remove from the database what it was told: the next one of the name begins
        anew.

        Raises
        ------
        PlanError: the database is not durable.
        """
        self._told.forget()

    def close(self) -> None:
        """Hear no more. Closing twice is no error."""
        self._told.stop()

    _copy_instead = "subscribe once more, under another name"
    _pickle_instead = "subscribe again under its name where the database is; a Delta can be pickled"

    def _called(self) -> str:
        return f"the subscription {self.name!r}"

    def __repr__(self) -> str:
        return f"NamedSubscription({self.name!r}, {self._told.state}, {self.position})"


def check_named(name: Any, on: Any, every: float | None, others: dict[str, Any]) -> None:
    """Refuse what a subscription with a name cannot have.

    Raises
    ------
    PlanError: one of them is given; or the name is none.
    """
    if type(name) is not str or not name:
        raise PlanError(
            f"cannot subscribe under the name {name!r:.100}: it is no text\n"
            "  give a name that the subscription has after a restart, such as name='alerts'"
        )
    for given in [n for n, value in others.items() if value is not None]:
        raise PlanError(
            f"cannot subscribe with {given}= under a name: what waits for it is kept as what it "
            "comes to\n  leave out one of them"
        )
    if is_loop(on):
        raise PlanError(
            "cannot run the callback of a subscription with a name in an event loop: it would wait "
            "for the disk\n  give on=ThreadPoolExecutor(1), and call the loop from there"
        )
    if on is not None and every is not None:
        raise PlanError(
            "cannot subscribe with on= and every= under a name: a thread of its own runs the "
            "callback by every=\n  leave out one of them"
        )


hint(NamedSubscription, OF_SUBSCRIPTIONS)
