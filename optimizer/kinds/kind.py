"""The kinds of values that annotations declare: one reader of annotations for all borders.

    int, date, UUID, ...          Scalar(int)              Any, object, a TypeVar     Anything
    Annotated[datetime, UTC]      Scalar(datetime, UTC)    Literal["a", 1]            Choice
    int | None, Optional[int]     Either(int, None)        a class of Enum            Members
    tuple[int, str]               Places(int, str)         tuple[int, ...], set[int]  Items
    dict[str, int], Mapping       Table(str, int)          records, also Box[int]     Struct
    any other class               Instance

Aliases, `NewType`, `Annotated`, `Final` and `Required` have the kind of the type inside. A name
that cannot be resolved, such as a forward reference to an undefined class, is `Anything`.

A struct reads its fields on demand, so that a class may have fields of its own class.

Cost: a few microseconds for an annotation; the fields of a class are read once.

`admits` and others check the values of a kind: None, classes of plain values, or any value.

    int              int, bool                no None
    float            float, int, bool         as for type checkers
    date             date, no datetime        the two do not compare
    int | None       int, bool, None
    Any, object, a TypeVar, no annotation     everything

Cost: a few microseconds for a class, once; O(values inside of it) for a value.
"""

from __future__ import annotations

import collections
import collections.abc
import datetime as dt
import sys
import typing
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import field
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from optimizer.kinds.fields import annotations_with_metadata, is_record, members
from optimizer.record import record

SCALARS: frozenset[type] = frozenset(
    {NoneType, bool, int, float, str, bytes, Decimal}
    | {dt.date, dt.time, dt.datetime, dt.timedelta}
)
"""Classes of single values that every border knows, beside `UUID`."""


def is_uuid(kind: object) -> bool:
    """Return True if a class is `uuid.UUID`, which is not imported for this."""
    return (getattr(kind, "__module__", None), getattr(kind, "__name__", None)) == ("uuid", "UUID")


@record
class Anything:
    """A value without declaration."""


@record
class Scalar:
    """A single value of a plain class. `zone` is the declared time zone of datetimes."""

    python: type
    zone: dt.tzinfo | None = None


@record
class Members:
    """A member of an enumeration."""

    python: type[Enum]


@record
class Choice:
    """One of some values, as `Literal` declares them."""

    values: tuple[Any, ...]


@record
class Either:
    """A value of one of several kinds, in their declared order."""

    kinds: tuple[Kind, ...]


@record
class Places:
    """A tuple of a fixed number of items."""

    items: tuple[Kind, ...]


@record
class Items:
    """A collection of any number of items of one kind.

    `python` is the class of the collection, or the class to build if it is declared as an
    `abstract` class.
    """

    python: type
    item: Kind
    abstract: type | None = field(default=None, compare=False, repr=False)


@record
class Table:
    """A mapping. `python` and `abstract` have the same meaning as in `Items`."""

    python: type
    key: Kind
    value: Kind
    abstract: type | None = field(default=None, compare=False, repr=False)


@record
class Struct:
    """A record of a class. `arguments` are the types in brackets of a generic one: `Box[int]`."""

    python: type
    arguments: tuple[Any, ...] = ()

    @property
    def fields(self) -> dict[str, Kind]:
        """The fields in their order.

        >>> from typing import NamedTuple
        >>> Struct(NamedTuple("Pair", [("a", int), ("b", "Unknown")])).fields
        {'a': Scalar(python=<class 'int'>, zone=None), 'b': Anything()}
        """
        return {name: kind_of(hint) for name, hint in self.hints.items()}

    @property
    def hints(self) -> dict[str, Any]:
        """The annotations of the fields in their order, with the arguments for type variables."""
        found = hints_of(self.python)
        names = getattr(self.python, "__parameters__", ())
        if not self.arguments or len(names) != len(self.arguments):
            return found
        given = dict(zip(names, self.arguments, strict=True))
        return {name: _replace_type_variables(hint, given) for name, hint in found.items()}


@record
class Instance:
    """An instance of any other class."""

    python: type


Kind: TypeAlias = (
    Anything | Scalar | Members | Choice | Either | Places | Items | Table | Struct | Instance
)
ANYTHING = Anything()
NONE = Scalar(NoneType)
KINDS = (Anything, Scalar, Members, Choice, Either, Places, Items, Table, Struct, Instance)
_SEQUENCES: dict[Any, type] = {
    collections.abc.Sequence: tuple,
    collections.abc.Iterable: tuple,
    collections.abc.Collection: tuple,
    collections.abc.MutableSequence: list,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
"""The collection that is built for an abstract one."""
_SAME_AS = {"Final", "Required", "NotRequired", "ReadOnly", "ClassVar"}
"""Wrappers of an annotation that do not change its values."""


def kind_of(annotation: Any) -> Kind:
    """Return the kind that an annotation stands for; a kind stands for itself.

    >>> kind_of(int | None)
    Either(kinds=(Scalar(python=<class 'int'>, zone=None), Scalar(python=<class 'NoneType'>, \
zone=None)))
    >>> kind_of(tuple[str, ...]).item, kind_of("Later"), kind_of(TypeVar("T", bound=str)).python
    (Scalar(python=<class 'str'>, zone=None), Anything(), <class 'str'>)
    """
    if isinstance(annotation, KINDS):
        return annotation
    if annotation is None:
        return NONE
    if annotation is Any or annotation is object or isinstance(annotation, str):
        return ANYTHING
    origin = get_origin(annotation)
    if origin is not None:
        return _kind_of_generic(annotation, origin, get_args(annotation))
    if isinstance(annotation, type):
        return _kind_of_class(annotation, ())
    return _kind_of_special(annotation)


def without_none(kind: Kind) -> Kind:
    """Return the kind of the values that are not None.

    >>> without_none(kind_of(int | None)), without_none(kind_of(int | str | None)).kinds[1]
    (Scalar(python=<class 'int'>, zone=None), Scalar(python=<class 'str'>, zone=None))
    """
    if isinstance(kind, Choice) and None in kind.values:
        return Choice(tuple(value for value in kind.values if value is not None))
    if not isinstance(kind, Either):
        return kind
    some = tuple(without_none(each) for each in kind.kinds if each != NONE)
    return some[0] if len(some) == 1 else Either(some) if some else NONE


def declares_none(kind: Kind) -> bool:
    """Return True if None is declared to be one of the values. `Anything` declares nothing.

    >>> declares_none(kind_of(int | None)), declares_none(kind_of(Any))
    (True, False)
    """
    match kind:
        case Either(kinds):
            return any(map(declares_none, kinds))
        case Choice(values):
            return None in values
        case _:
            return kind == NONE


def class_of(kind: Kind) -> type | None:
    """Return the class that all values of a kind are declared to be of; None if there is none.

    >>> class_of(kind_of(dict[str, int])), class_of(kind_of(int | None))
    (<class 'dict'>, None)
    """
    match kind:
        case Anything() | Choice() | Either():
            return None
        case Places():
            return tuple
        case Items(abstract=abstract) | Table(abstract=abstract) if abstract is not None:
            return abstract
        case _:
            return kind.python


def any_of(kind: Kind) -> tuple[Kind, ...]:
    """Return the kinds of a union; a single kind itself."""
    return kind.kinds if isinstance(kind, Either) else (kind,)


def places_of(annotation: Any) -> tuple[Any, ...] | None:
    """Return the annotations of the items of a tuple of a fixed number; None for all others.

    >>> places_of(tuple[int, str | None]), places_of(tuple[int, ...]), places_of(tuple)
    ((<class 'int'>, str | None), None, None)
    """
    kind = kind_of(annotation)
    if not isinstance(kind, Places):
        return None
    return get_args(annotation) if get_origin(annotation) is tuple else kind.items


def item_of(annotation: Any, place: int) -> Any:
    """Return the annotation of an item of a tuple; `Any` if none is declared.

    >>> item_of(tuple[int, str], -1), item_of(tuple[int, ...], 7), item_of(tuple[int, str], 2)
    (<class 'str'>, <class 'int'>, typing.Any)
    """
    items = get_args(annotation) if get_origin(annotation) is tuple else ()
    if ... in items:
        return items[0]
    return items[place] if -len(items) <= place < len(items) else Any


def class_written(annotation: Any) -> Any:
    """Return the class before the brackets of an annotation; itself if it has no brackets.

    >>> class_written(tuple[int, str]), class_written(int)
    (<class 'tuple'>, <class 'int'>)
    """
    return get_origin(annotation) or annotation


def inside_of(kind: Kind) -> tuple[Kind, ...]:
    """Return the kinds inside a kind, one level down; () of a kind without parts."""
    match kind:
        case Either(kinds):
            return kinds
        case Places(items):
            return items
        case Items(_, item):
            return (item,)
        case Table(_, key, value):
            return (key, value)
        case Struct():
            return tuple(kind.fields.values())
        case _:
            return ()


def name_of(kind: Kind) -> str:
    """Return the kind as one would annotate it.

    >>> name_of(kind_of(dict[str, tuple[int | None, ...]]))
    'dict[str, tuple[int | None, ...]]'
    """
    match kind:
        case Anything():
            return "Any"
        case Scalar(python, zone):
            name = "None" if python is NoneType else python.__name__
            return name if zone is None else f"{name} of {zone}"
        case Choice(values):
            return f"Literal[{', '.join(map(repr, values))}]"
        case Either(kinds):
            return " | ".join(map(name_of, kinds))
        case Places(items):
            return f"tuple[{', '.join(map(name_of, items)) or '()'}]"
        case Items(python, item):
            more = ", ..." if python is tuple else ""
            return f"{python.__name__}[{name_of(item)}{more}]"
        case Table(python, key, value):
            return f"{python.__name__}[{name_of(key)}, {name_of(value)}]"
        case Struct(python, arguments) if arguments:
            return f"{python.__name__}[{', '.join(name_of(kind_of(a)) for a in arguments)}]"
        case _:
            return kind.python.__name__


def hints_of(kind: type) -> dict[str, Any]:
    """Return the annotations of the fields of a class, `Any` for each that cannot be evaluated.

    An annotation that names an undefined class does not affect the others.
    """
    known = annotations_with_metadata(kind) or evaluated_apart(kind)
    return {name: known.get(name, Any) for name in members(kind)}


def evaluated_apart(kind: type) -> dict[str, Any]:
    """Return the annotations of a class, each evaluated alone; `Any` if that cannot be done."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        for name, hint in vars(base).get("__annotations__", {}).items():
            holder = type("Holder", (), {"__annotations__": {name: hint}})
            module = sys.modules.get(base.__module__)
            names = vars(module) if module is not None else {}
            try:
                hints = typing.get_type_hints(holder, names, dict(vars(base)), include_extras=True)
                found[name] = hints[name]
            except Exception:  # evaluating an annotation may raise any exception
                found[name] = Any
    return found


def _kind_of_generic(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Kind:
    """Return the kind of an annotation with arguments: a union, literal, alias, tuple or class."""
    if origin is Annotated:
        kind = kind_of(arguments[0])
        zone = next((n for n in annotation.__metadata__ if isinstance(n, dt.tzinfo)), None)
        return Scalar(dt.datetime, zone) if kind == Scalar(dt.datetime) else kind
    if origin in (Union, UnionType):
        return _union_of_kinds([kind_of(part) for part in arguments])
    if origin is Literal:
        return Choice(arguments)
    if origin is tuple and not arguments and annotation is not typing.Tuple:  # noqa: UP006
        return Places(())
    if getattr(origin, "_name", None) in _SAME_AS:
        return kind_of(arguments[0])
    if type(origin).__name__ == "TypeAliasType":
        given = dict(zip(origin.__type_params__, arguments, strict=False))
        return kind_of(_replace_type_variables(origin.__value__, given))
    return _kind_of_class(origin, arguments) if isinstance(origin, type) else ANYTHING


def _kind_of_special(annotation: Any) -> Kind:
    """Return the kind of an annotation that is neither a class nor has arguments."""
    if isinstance(annotation, TypeVar):
        if annotation.__constraints__:
            return _union_of_kinds([kind_of(part) for part in annotation.__constraints__])
        return ANYTHING if annotation.__bound__ is None else kind_of(annotation.__bound__)
    if hasattr(annotation, "__supertype__"):  # of `NewType`
        return kind_of(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return kind_of(annotation.__value__)
    if getattr(annotation, "_name", None) == "LiteralString":
        return Scalar(str)
    return ANYTHING


def _kind_of_class(python: type, arguments: tuple[Any, ...]) -> Kind:
    """Return the kind of a class with type arguments; `Instance` if it is no known kind."""
    if python in SCALARS or is_uuid(python):
        return Scalar(python)
    if issubclass(python, Enum):
        return Members(python)
    if is_record(python):
        return Struct(python, arguments)
    if python in _SEQUENCES:
        return Items(_SEQUENCES[python], _first(arguments), python)
    if issubclass(python, tuple):
        return _kind_of_tuple(python, arguments)
    if issubclass(python, Mapping):
        key, value = (*map(kind_of, arguments), ANYTHING, ANYTHING)[:2]
        is_abstract = python in (Mapping, collections.abc.MutableMapping)
        return Table(dict, key, value, python) if is_abstract else Table(python, key, value)
    if issubclass(python, list | set | frozenset | collections.deque) or _is_generic_collection(
        python
    ):
        return Items(python, _first(arguments))
    return Instance(python)


def _kind_of_tuple(python: Any, arguments: tuple[Any, ...]) -> Kind:
    """Return the kind of a tuple: `Places` for given items, `Items` for any number of them."""
    if python is tuple and arguments and ... not in arguments:
        if any(map(_is_unpacked, arguments)):
            return Items(tuple, ANYTHING)
        return Places(tuple(map(kind_of, arguments)))
    return Items(python, _first(arguments))


def _is_unpacked(item: Any) -> bool:
    return getattr(item, "__unpacked__", False) or type(item).__name__ == "_UnpackGenericAlias"


def _is_generic_collection(python: type) -> bool:
    """Return True for a generic collection of one type of items, as `Bag`."""
    is_generic = len(getattr(python, "__parameters__", ())) == 1
    return is_generic and issubclass(python, collections.abc.Collection)


def _first(arguments: tuple[Any, ...]) -> Kind:
    return kind_of(arguments[0]) if arguments else ANYTHING


def _union_of_kinds(kinds: list[Kind]) -> Kind:
    """Return a union of kinds, with nested unions flattened; `Anything` takes all."""
    flat: list[Kind] = []
    for kind in kinds:
        for each in kind.kinds if isinstance(kind, Either) else (kind,):
            if each not in flat:
                flat.append(each)
    return flat[0] if len(flat) == 1 else Either(tuple(flat))


def _replace_type_variables(hint: Any, given: dict[Any, Any]) -> Any:
    """Replace the type variables in an annotation by their types in `given`, where it has one."""
    if isinstance(hint, TypeVar):
        return given.get(hint, hint)
    names = getattr(hint, "__parameters__", ())
    if not names or isinstance(hint, type):
        return hint
    return hint[tuple(given.get(name, name) for name in names)]


WIDER: Mapping[type, frozenset[type]] = {
    int: frozenset({int, bool}),
    float: frozenset({float, int, bool}),
}
"""The classes whose instances are accepted as values of a plain class, besides the class itself."""


def admits_none(kind: Kind) -> bool:
    """Return True if None is a value of the kind, or nothing is declared that it could break.

    >>> from optimizer.kinds.kind import kind_of
    >>> [admits_none(kind_of(each)) for each in (int | None, Any, object, int, list[None])]
    [True, True, True, False, False]
    """
    match kind:
        case Anything():
            return True
        case Either(kinds):
            return any(map(admits_none, kinds))
        case Choice(values):
            return None in values
        case Instance(python):
            return _is_instance(None, python)
        case _:
            return kind == NONE


def classes_of(kind: Kind) -> frozenset[type] | None:
    """Return the classes whose exact instances make up a kind of plain values.

    Return None for a kind that has other values, or not all of a class.

    >>> from optimizer.kinds.kind import kind_of
    >>> sorted(each.__name__ for each in classes_of(kind_of(float | None)))
    ['NoneType', 'bool', 'float', 'int']
    """
    match kind:
        case Scalar(python) if python in SCALARS:
            return WIDER.get(python, frozenset({python}))
        case Either(kinds):
            found = [classes_of(each) for each in kinds]
            some = [each for each in found if each is not None]
            return frozenset().union(*some) if len(some) == len(found) else None
        case _:
            return None


def admits(kind: Kind, value: Any) -> bool:
    """Return True if a value, with all values inside it, is of a kind.

    >>> from optimizer.kinds.kind import kind_of
    >>> admits(kind_of(tuple[int, str | None]), (1, None)), admits(kind_of(list[int]), ["a"])
    (True, False)
    """
    match kind:
        case Anything():
            return True
        case Scalar(python):
            return _is_value_of_class(value, python)
        case Choice(values):
            return any(type(value) is type(each) and value == each for each in values)
        case Either(kinds):
            return any(admits(each, value) for each in kinds)
        case Places(items):
            is_wide = isinstance(value, tuple) and len(value) == len(items)
            return is_wide and all(map(admits, items, value))
        case Items(python, item):
            return _is_collection_of(value, python) and all(admits(item, each) for each in value)
        case Table(_, key, of):
            is_mapping = isinstance(value, Mapping)
            return is_mapping and all(
                admits(key, name) and admits(of, each) for name, each in value.items()
            )
        case Struct(python):
            return isinstance(value, python) and all(
                not hasattr(value, name) or admits(each, getattr(value, name))
                for name, each in kind.fields.items()
            )
        case Members(python) | Instance(python):
            return _is_instance(value, python)


def with_none(kind: Kind) -> str:
    """Return the annotation of the kind with None admitted.

    >>> from optimizer.kinds.kind import kind_of
    >>> with_none(kind_of(int))
    'int | None'
    """
    return f"{name_of(kind)} | None"


def _is_value_of_class(value: Any, python: type) -> bool:
    """Return True if a value is of a class: integers count as floats, datetimes not as dates."""
    if python is NoneType:
        return value is None
    if python is dt.date and isinstance(value, dt.datetime):
        return False
    return isinstance(value, (float, int) if python is float else python)


def _is_collection_of(value: Any, python: type) -> bool:
    """Return True if a value is a collection of the declared class, which may be abstract."""
    if python in (tuple, list):
        return isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if python in (set, frozenset):
        return isinstance(value, Set)
    return isinstance(value, python) and isinstance(value, Collection)


def _is_instance(value: Any, python: Any) -> bool:
    """Return the result of `isinstance`; True if the class does not support it."""
    try:
        return isinstance(value, python)
    except TypeError:  # a protocol without support for `isinstance`
        return True
