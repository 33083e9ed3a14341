"""`tracked`: have the objects of a class be followed, so that they can be in tables.

    @tracked                           a class with annotations becomes a dataclass
    @tracked
    @dataclass / define / Model ...    others stay what they are
    tracked(TheirClass)                one that somebody else has written

Its `__setattr__` and `__delattr__` are replaced by ones that also tell the tables, and that is all:
no base class, no metaclass, and `__eq__`, `__hash__` and `__init__` are those of the class.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from typing_extensions import dataclass_transform

from optimizer.kinds.fields import TRACKED, attributes, is_record
from reactive.borders.objects.assigning import deleter, setter
from reactive.borders.objects.records import current_row
from reactive.borders.objects.shapes import Options, is_twin
from reactive.engine.storage.immutable import VALUES
from reactive.errors import PlanError

C = TypeVar("C", bound=type)


@overload
@dataclass_transform(eq_default=False)
def tracked(kind: C, /) -> C: ...
@overload
@dataclass_transform(eq_default=False)
def tracked(
    *, undo: bool = True, only: Iterable[str] | None = None, exclude: Iterable[str] = ()
) -> Callable[[C], C]: ...
def tracked(
    kind: Any = None,
    /,
    *,
    undo: bool = True,
    only: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
) -> Any:
    """Have tables follow the objects of a class: `order.total = 7` is a commit. As a decorator.

    Of a dataclass, an attrs class, a pydantic model, a `msgspec.Struct`, or a class with
    annotations or `__slots__`. One with annotations and without `__init__` becomes a dataclass.
    Subclasses are tracked too.

    Parameters
    ----------
    undo: whether a transaction that fails puts the values of attributes back that it found. If not,
        objects keep what was assigned, and the next commit takes it.
    only: the attributes that are followed; the others are not in rows.
    exclude: attributes that are not.

    In a table of the class a row is a snapshot of an object: an instance of the class that does not
    change, with its methods and properties. `of(row)` is the object.

    Raises
    ------
    PlanError: there is nothing to follow, as the class is frozen or declares no attribute; or it
        has no attribute of a name that is given.

    >>> from reactive import Database, Sum, tracked
    >>> @tracked
    ... class Order:
    ...     id: int
    ...     customer: str
    ...     total: float = 0.0
    >>> db = Database()
    >>> orders = db.table(Order, key="id")
    >>> sums = orders.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.total)).materialize()
    >>> order = Order(1, "ann", 20.0)
    >>> orders.add(order)
    >>> order.total = 5.0
    >>> with db.transaction():
    ...     order.customer = "bob"
    ...     order.total += 2.0
    >>> list(sums), db.version
    ([('bob', 7.0)], 3)
    """
    options = Options(
        undo, None if only is None else frozenset(only), frozenset(exclude), current_row
    )
    if kind is None:
        return lambda kind: _tracked(kind, options)
    return _tracked(kind, options)


def _tracked(kind: Any, options: Options) -> Any:
    if not isinstance(kind, type):
        raise PlanError(
            f"tracked takes a class, not {kind!r:.100}\n"
            "  write @tracked above the class, or tracked(TheClass)"
        )
    if issubclass(kind, dict | list | set) or hasattr(kind, "__total__"):
        raise PlanError(
            f"{kind.__name__} is a class of containers, whose items are no attributes\n"
            "  have a class with annotations hold a list, dictionary or set"
        )
    if is_twin(kind):
        raise PlanError(f"{kind.__name__} is the class of snapshots\n  track the class itself")
    _check_changes(kind)
    if _is_to_be_made(kind):
        kind = dataclasses.dataclass(eq=False)(kind)
    names = attributes(kind)
    _check_names(kind, options, names)
    for name, make in (("__setattr__", setter), ("__delattr__", deleter)):
        found: Any = getattr(kind, name)
        if not hasattr(found, "untracked"):
            type.__setattr__(kind, name, make(found))
    type.__setattr__(kind, TRACKED, options)
    return kind


def _check_changes(kind: Any) -> None:
    """Refuse classes whose objects do not change."""
    params = getattr(kind, "__dataclass_params__", None)
    struct = getattr(kind, "__struct_config__", None)
    is_frozen = (
        (params is not None and params.frozen)
        or (struct is not None and struct.frozen)
        or getattr(kind.__setattr__, "__name__", "") == "_frozen_setattrs"
        or (hasattr(kind, "model_fields") and bool(kind.model_config.get("frozen")))
    )
    if is_frozen or issubclass(kind, VALUES):
        raise PlanError(
            f"objects of {kind.__name__} do not change: there is nothing to track\n"
            "  they can be rows as they are: db.table(" + kind.__name__ + ")"
        )


def _is_to_be_made(kind: Any) -> bool:
    """Whether it is a class that only declares its attributes."""
    return (
        not is_record(kind)
        and kind.__init__ is object.__init__
        and "__slots__" not in vars(kind)
        and bool(inspect.get_annotations(kind))
    )


def _check_names(kind: Any, options: Options, names: list[str]) -> None:
    if options.only is not None and options.exclude:
        raise PlanError(
            f"{kind.__name__} is tracked with only= and exclude=, of which one says it all\n"
            "  name the attributes that are followed, or those that are not"
        )
    given = {*(options.only or ()), *options.exclude}
    unknown = sorted(given.difference(names))
    if unknown and not inspect.isabstract(kind):
        raise PlanError(
            f"{kind.__name__} has no attribute {unknown[0]!r} that could be tracked\n"
            f"  it has {', '.join(names) or 'none'}"
        )
    if not options.names(names) and not inspect.isabstract(kind):
        raise PlanError(
            f"{kind.__name__} declares no attributes to track\n"
            "  annotate them in the class, as in `total: float`, or name them in __slots__"
        )
