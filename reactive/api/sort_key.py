"""The keys of an order as a query names them: `order_by(asc(f), desc(g, nulls="last"))`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Function
from reactive.engine.runtime.boundary import outermost

Ts = TypeVarTuple("Ts")
V = TypeVar("V", covariant=True)
Nulls: TypeAlias = Literal["first", "last"]
"""Where None stands: before everything, or after."""


class Less(Protocol):
    """What `<` compares: not None, nor what may be None."""

    def __lt__(self, other: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class SortKey(Generic[V, *Ts]):
    """A key of `order_by` with a direction of its own; made by `asc` and `desc`.

    >>> from reactive import desc
    >>> desc(len).descending
    True
    """

    of: Callable[[*Ts], V] | str
    descending: bool
    nulls: Nulls | None = None

    def __post_init__(self) -> None:
        _check_nulls(self.nulls)

    def __repr__(self) -> str:
        nulls = "" if self.nulls is None else f", nulls={self.nulls!r}"
        return f"SortKey({'desc' if self.descending else 'asc'}(...{nulls}))"


@overload
def asc(of: Callable[[*Ts], V], *, nulls: None = None) -> SortKey[V, *Ts]: ...
@overload
def asc(of: Callable[[*Ts], V | None], *, nulls: Nulls) -> SortKey[V, *Ts]: ...
@overload
def asc(of: str, *, nulls: Nulls | None = None) -> SortKey[Any, *tuple[Any, ...]]: ...
@outermost
def asc(of: Any, *, nulls: Nulls | None = None) -> Any:
    """Least first.

    Parameters
    ----------
    of: callable, bindings -> values that `<` compares, or the name of a field.
    nulls: `"first"` or `"last"`, where None stands, as the value or as a part of a tuple.

    >>> from reactive import Database, asc, desc
    >>> words = Database().table(str)
    >>> view = words.order_by(desc(len), asc(lambda w: w)).materialize()
    >>> words.add_all(["to", "be", "not"])
    >>> list(view)
    ['not', 'be', 'to']
    """
    return SortKey(of, False, nulls)


@overload
def desc(of: Callable[[*Ts], V], *, nulls: None = None) -> SortKey[V, *Ts]: ...
@overload
def desc(of: Callable[[*Ts], V | None], *, nulls: Nulls) -> SortKey[V, *Ts]: ...
@overload
def desc(of: str, *, nulls: Nulls | None = None) -> SortKey[Any, *tuple[Any, ...]]: ...
@outermost
def desc(of: Any, *, nulls: Nulls | None = None) -> Any:
    """Greatest first, NaN before all other values; see `asc`.

    >>> from reactive import Database, desc
    >>> ages = Database().table(object)
    >>> view = ages.order_by(desc(lambda age: age, nulls="last")).materialize()
    >>> ages.add_all([31, None, 47])
    >>> list(view)
    [47, 31, None]
    """
    return SortKey(of, True, nulls)


_OF_COMPARISON = type(cmp_to_key(lambda one, other: 0))
"""The class of what `functools.cmp_to_key` gives."""


def sort_keys(
    keys: tuple[Any, ...],
    take: Callable[[Any], Function],
    role: str,
    *,
    descending: bool,
    nulls: Nulls | None,
) -> tuple[plan.SortKey, ...]:
    """The keys as the plan holds them; `descending` and `nulls` are of those that do not say.

    Raises
    ------
    PlanError: `nulls` is no place; or all keys have a direction of their own beside `descending`.
    """
    _check_nulls(nulls)
    if descending and all(isinstance(key, SortKey) for key in keys):
        raise PlanError(
            f"{role}(..., descending=True) of keys that all say asc or desc\n"
            "  it is for plain callables; write desc(...)"
        )
    made = []
    for key in keys:
        if key is asc or key is desc:
            raise PlanError(
                f"{role} takes keys, not {key.__name__} itself\n  write {key.__name__}(f)"
            )
        of = key.of if isinstance(key, SortKey) else key
        if isinstance(of, _OF_COMPARISON):
            raise PlanError(
                f"{role} cannot sort by a function of cmp_to_key: its keys have no hash\n"
                "  give a function from a row to its key: order_by(lambda row: (row.a, -row.b))"
            )
        if isinstance(key, SortKey):
            made.append(plan.SortKey(take(key.of), key.descending, key.nulls or nulls))
        else:
            made.append(plan.SortKey(take(key), descending, nulls))
    return tuple(made)


def turned(key: plan.SortKey) -> plan.SortKey:
    """The key of the order the other way round, None included."""
    nulls: dict[Nulls | None, Nulls | None] = {"first": "last", "last": "first", None: None}
    return plan.SortKey(key.function, not key.descending, nulls[key.nulls])


def _check_nulls(nulls: object) -> None:
    if nulls is not None and nulls != "first" and nulls != "last":
        raise PlanError(f'nulls={nulls!r} is no place for None\n  write nulls="first" or "last"')
