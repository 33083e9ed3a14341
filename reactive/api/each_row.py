"""Iterators over rows that know their relation, for a generator expression passed to `live`.

live(x for x in orders if x.total > 3)      Python calls iter(orders) before `live` is called
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import GEN_CREATED, getgeneratorstate
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from reactive.engine.runtime.boundary import hide

if TYPE_CHECKING:
    from reactive.api.view import View

    T = TypeVar("T")
    A = TypeVar("A")
    B = TypeVar("B")
    Cs = TypeVarTuple("Cs")

    class only_row:
        """The type of `View.value`: the row, or the tuple of its bindings."""

        def __init__(self, read: Callable[[Any], Any]) -> None: ...
        @overload
        def __get__(self, view: View[T], owner: type) -> T: ...
        @overload
        def __get__(self, view: View[A, B, *Cs], owner: type) -> tuple[A, B, *Cs]: ...
        def __get__(self, view: Any, owner: type) -> Any: ...
else:
    only_row = property


def each_row(relation: Any, rows: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """Yield the rows; `rows` is called when the first row is requested."""
    try:
        yield from rows()
    except Exception as error:
        hide(error)
        raise


def relation_of(iterator: Any) -> Any:
    """Return the relation of an iterator that was not started; None for any other iterator."""
    if not isinstance(iterator, GeneratorType) or iterator.gi_code is not _CODE:
        return None
    is_new = getgeneratorstate(iterator) == GEN_CREATED
    frame = iterator.gi_frame
    return frame.f_locals["relation"] if is_new and frame is not None else None


_CODE = each_row.__code__
