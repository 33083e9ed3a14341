"""Base classes of objects of a database: closing, refused copies, hints for wrong names.

`Uncopyable` refuses copies and pickles, and names what can be copied instead.

copy.copy(view), copy.deepcopy(...)     TypeError: cannot copy view 'totals': ...
pickle.dumps(view)                      TypeError: cannot pickle view 'totals': ...

`NameHint` stands for an attribute that a class does not have, and names the right one.

`__getattr__` could do so for any name, but it makes all other attributes of the class slow: the
interpreter does not cache attributes of classes that define it.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import getattr_static
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self

from reactive.engine.runtime.boundary import boundary, hide

# The context manager of all closeable objects.


class Closeable:
    """A context manager that calls `close()` at the end."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@boundary
class Uncopyable:
    """Base of classes whose objects cannot be copied or pickled."""

    __slots__ = ()
    _copy_instead: ClassVar[str]
    _pickle_instead: ClassVar[str]

    def _called(self) -> str:
        """Return the name of the object in a sentence."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        raise TypeError(f"cannot copy {self._called()}: {_WHY}\n  {self._copy_instead}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle {self._called()}: {_WHY}\n  {self._pickle_instead}")


_WHY = "it lives with its database"


class NameHint:
    """Descriptor for an attribute that a class does not have; reading it raises with a hint."""

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint

    def __get__(self, thing: object, kind: type) -> NoReturn:
        text = f"a {kind.__name__} has no {self._name!r}\n  {self._hint}"
        try:
            raise AttributeError(text, name=self._name, obj=thing)
        except AttributeError as error:
            hide(error)
            raise


def hint(kind: type, hints: Mapping[str, str]) -> None:
    """Add hints for missing names to a class.

    >>> class Stack(list): ...
    >>> hint(Stack, {"push": "its name is append"})
    >>> Stack().push(1)
    Traceback (most recent call last):
    AttributeError: a Stack has no 'push'
      its name is append
    >>> "push" in dir(Stack), hasattr(Stack, "push")
    (True, False)
    """
    for name, text in hints.items():
        if type(getattr_static(kind, name, None)) not in (type(None), NameHint):
            raise TypeError(f"{kind.__name__} has {name!r}: no hint is needed")
        setattr(kind, name, NameHint(name, text))
    if getattr_static(kind, "__dir__") is getattr_static(object, "__dir__"):
        type.__setattr__(kind, "__dir__", Hinting.__dir__)


class Hinting:
    """Base of classes with hints; `dir` of an object does not list the missing names."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        kind: Any = type(self)
        names = object.__dir__(self)
        return [name for name in names if type(getattr_static(kind, name, None)) is not NameHint]
