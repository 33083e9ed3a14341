"""Values of columns that can be changed in place, as values that cannot: those of JSON, arrays.

    list -> tuple      set -> frozenset      bytearray -> bytes      dict -> FrozenDict

and so inside of them. What has a hash stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")
PLAIN = frozenset({int, str, float, bool, bytes, type(None)})


class FrozenDict(dict[K, V]):
    """A dictionary that does not change, and so has a hash. It equals dictionaries.

    >>> size = FrozenDict(width=2)
    >>> size["width"], size == {"width": 2}, hash(size) == hash(FrozenDict(width=2))
    (2, True, True)
    >>> size["width"] = 3
    Traceback (most recent call last):
    TypeError: a dictionary in a row does not change: change that of the object
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a dictionary in a row does not change: change that of the object")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return FrozenDict, (dict(self),)


def frozen(value: Any) -> Any:
    """The value, or one that is equal but for what makes it change.

    >>> frozen({"sizes": [1, 2], "tags": {"a"}})
    {'sizes': (1, 2), 'tags': frozenset({'a'})}
    """
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, Mapping):
        return FrozenDict((key, frozen(each)) for key, each in value.items())
    if isinstance(value, list) or type(value) is tuple:
        return tuple([frozen(each) for each in value])
    if isinstance(value, AbstractSet):
        return frozenset(map(frozen, value))
    return bytes(value) if isinstance(value, bytearray) else value
