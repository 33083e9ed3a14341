"""Readings of what only commits change, that enter nothing while nobody commits.

    sequence = db_lock.sequence
    nobody is inside  -->  read  -->  nobody came meanwhile: done
                                  -->  else again, carefully

It is what `Gate.read` does, as one function per reading: of a look-up that takes 40 nanoseconds
each call more is as much again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from reactive.engine.codegen.functions import Values, build
from reactive.engine.runtime.boundary import hide
from reactive.engine.runtime.interrupts import is_common

F = TypeVar("F", bound=Callable[..., Any])

_TEXT = """\
def reading({parameters}):
    db_lock = self._db_lock
    sequence = db_lock.sequence
    if not db_lock.depth and {ready}:
        try:
            found = {read}
            if {if_found} and not db_lock.depth and db_lock.sequence == sequence:
                return {give}
        except Exception as error:  # it may be due to what another thread does: it will show
            if not is_common(error): raise
    try:
        return carefully({parameters})
    except Exception as error:
        hide(error)
        raise
"""


def optimistic_read(
    read: str, *, ready: str, if_found: str = "True", give: str = "found"
) -> Callable[[F], F]:
    """Have a method give an expression of its parameters first, and do its own way if it cannot.

    Parameters
    ----------
    read: what is `found`, as long as nobody commits.
    ready: a condition for trying.
    if_found: a condition for giving it; by default it is given, whatever it is. Otherwise the
        method goes on in its own way, and may know better: of a NaN that is another object, say.
    give: what is given, by default what was found.

    >>> from reactive.engine.runtime.lock import DatabaseLock
    >>> class Counter:
    ...     _db_lock, found = DatabaseLock(), {"a": 1}
    ...     @optimistic_read("self.found[item]", ready="self.found")
    ...     def count(self, item): return 0
    >>> Counter().count("a"), Counter().count("b")
    (1, 0)
    """

    def of(carefully: F) -> F:
        parts = {"ready": ready, "read": read, "if_found": if_found, "give": give}

        def first(self: Any, *arguments: Any, **named: Any) -> Any:
            """Makes the method when it is first called, and is it no longer."""
            made = _reading(carefully, parts)
            for kind in type(self).__mro__:
                if vars(kind).get(carefully.__name__) is waiting:
                    setattr(kind, carefully.__name__, made)
            try:
                return made(self, *arguments, **named)
            except Exception as error:
                hide(error)
                raise

        waiting: Any = wraps(carefully)(first)
        return waiting  # type: ignore[no-any-return]

    return of


def _reading(carefully: F, parts: dict[str, str]) -> F:
    values = Values()
    values.by_name |= {"carefully": carefully, "hide": hide, "is_common": is_common}
    parameters = ", ".join(signature(carefully).parameters)
    made: Any = build("reading", _TEXT.format(parameters=parameters, **parts), values)
    made.__defaults__ = carefully.__defaults__
    return wraps(carefully)(made)  # type: ignore[return-value]
