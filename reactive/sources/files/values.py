"""Values of fields, from JSON and from text, as annotations say.

    float           7, "7.5"                    date      "2026-11-26"
    int | None      7, null; "7", ""            Decimal   "12.10", 12
    tuple[int, ...] [1, 2]; "[1, 2]"            Color     "red", of an Enum by its values

What a class says nothing of stays as it is. Other classes are called with the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from optimizer.kinds.fields import is_record
from reactive.collections.bag import Bag

Made = Callable[[Any], Any]
"""Makes a value of a row of a given one; raises an exception if it is none."""
WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
"""Text that is true, or false."""
DATES = (datetime, date, time)
LISTS: tuple[type, ...] = (tuple, list, frozenset, set, Bag)


class Misfit(ValueError):
    """A value is none of what its field is declared as."""

    def __init__(self, value: Any, wanted: Any) -> None:
        super().__init__(f"{value!r:.80} is no {called(wanted)}")


def meant(annotation: Any) -> Any:
    """What an annotation stands for: without aliases, new types and notes."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation


def called(annotation: Any) -> str:
    """What is said of it."""
    annotation = meant(annotation)
    if get_origin(annotation) is None and isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "").replace("NoneType", "None")


def may_be_none(annotation: Any) -> bool:
    """Whether None is one of its values."""
    annotation = meant(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return any(map(may_be_none, get_args(annotation)))
    return annotation in (None, NoneType)


def plain(annotation: Any) -> frozenset[type]:
    """The classes of values that are taken as they are."""
    annotation = meant(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return frozenset[type]().union(*map(plain, get_args(annotation)))
    if annotation in (None, NoneType):
        return frozenset({NoneType})
    known = (int, float, str, bool, bytes, Decimal, *DATES)
    return frozenset({annotation}) if annotation in known else frozenset()


def from_json(annotation: Any, record: Callable[[Any], Made]) -> Made:
    """What makes values of an annotation of what JSON or Arrow has.

    Parameters
    ----------
    record: class -> what makes its records.

    >>> from_json(tuple[float, ...], type)([1, 2.5])
    (1.0, 2.5)
    """
    annotation = meant(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object or isinstance(annotation, TypeVar | str):
        return _frozen
    if origin in (Union, UnionType):
        return _first([from_json(part, record) for part in parts], annotation, plain(annotation))
    if origin is Literal:
        return _one_of(parts, annotation)
    if is_record(annotation):
        return record(annotation)
    kind = origin or annotation
    if kind is tuple and parts and parts[-1] is not ...:
        return _places([from_json(part, record) for part in parts], annotation)
    if kind in LISTS:
        item = from_json(parts[0], record) if parts else _frozen
        return _collection(frozenset if kind is set else tuple if kind is list else kind, item)
    return _scalar(kind)


def from_text(annotation: Any, record: Callable[[Any], Made]) -> Made:
    """What makes values of an annotation of text, as the cells of CSV are.

    >>> from_text(int | None, type)("7"), from_text(int | None, type)("")
    (7, None)
    """
    annotation = meant(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in (int, float, str):
        return annotation  # type: ignore[no-any-return]
    if annotation is Any or annotation is object or isinstance(annotation, TypeVar | str):
        return str
    if origin in (Union, UnionType):
        some = [part for part in parts if part is not NoneType]
        made = [from_text(part, record) for part in some]
        one = made[0] if len(made) == 1 else _first(made, annotation, frozenset())
        return _or_none(one) if len(some) < len(parts) else one
    if annotation is bool:
        return _word
    if annotation is bytes:
        return str.encode
    if origin is Literal:
        return _one_of_texts(parts, annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _member_of_text(annotation)
    if is_record(annotation) or (origin or annotation) in LISTS:
        of_json = from_json(annotation, record)
        return lambda text: of_json(json.loads(text))
    return _scalar(origin or annotation)


def _scalar(kind: Any) -> Made:
    if kind is float:
        return _float
    if kind in (int, str, bool, bytes, NoneType, None):
        return _exactly(NoneType if kind is None else kind)
    if kind in DATES:
        return _date(kind)
    if kind is Decimal:
        return _decimal
    return _called(kind)


def _exactly(kind: type) -> Made:
    def made(value: Any) -> Any:
        if type(value) is not kind:
            raise Misfit(value, kind)
        return value

    return made


def _float(value: Any) -> float:
    if type(value) not in (float, int):
        raise Misfit(value, float)
    return float(value)


def _decimal(value: Any) -> Decimal:
    if type(value) not in (Decimal, int, float, str):
        raise Misfit(value, Decimal)
    try:
        return value if type(value) is Decimal else Decimal(str(value))
    except ArithmeticError:
        raise Misfit(value, Decimal) from None


def _date(kind: Any) -> Made:
    def made(value: Any) -> Any:
        if type(value) is kind:
            return value
        if type(value) is not str:
            raise Misfit(value, kind)
        try:
            return kind.fromisoformat(value)
        except ValueError:
            raise Misfit(value, kind) from None

    return made


def _called(kind: Any) -> Made:
    def made(value: Any) -> Any:
        if isinstance(kind, type) and isinstance(value, kind):
            return value
        try:
            return kind(value)
        except Exception as error:
            raise Misfit(value, kind) from error

    return made


def _word(text: str) -> bool:
    found = WORDS.get(text.strip().lower())
    if found is None:
        raise Misfit(text, bool)
    return found


def _or_none(made: Made) -> Made:
    return lambda text: None if text == "" else made(text)


def _first(makers: list[Made], annotation: Any, as_it_is: frozenset[type]) -> Made:
    """What the first maker makes that can."""

    def made(value: Any) -> Any:
        if type(value) in as_it_is:
            return value
        for maker in makers:
            try:
                return maker(value)
            except (ValueError, TypeError):
                pass
        raise Misfit(value, annotation)

    return made


def _one_of(values: tuple[Any, ...], annotation: Any) -> Made:
    def made(value: Any) -> Any:
        for known in values:
            if known == value and type(known) is type(value):
                return known
        raise Misfit(value, annotation)

    return made


def _one_of_texts(values: tuple[Any, ...], annotation: Any) -> Made:
    known = {str(value): value for value in values}

    def made(text: str) -> Any:
        if text not in known:
            raise Misfit(text, annotation)
        return known[text]

    return made


def _member_of_text(kind: type[Enum]) -> Made:
    known = {str(member.value): member for member in kind}

    def made(text: str) -> Enum:
        if text not in known:
            raise Misfit(text, kind)
        return known[text]

    return made


def _collection(kind: Any, item: Made) -> Made:
    def made(values: Any) -> Any:
        if not isinstance(values, list | tuple):
            raise Misfit(values, kind)
        return kind([item(value) for value in values])

    return made


def _places(makers: list[Made], annotation: Any) -> Made:
    def made(values: Any) -> Any:
        if not isinstance(values, list | tuple) or len(values) != len(makers):
            raise Misfit(values, annotation)
        return tuple([make(value) for make, value in zip(makers, values, strict=True)])

    return made


def _frozen(value: Any) -> Any:
    """A value of a field of which nothing is declared; it must have a hash."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(each)) for name, each in value.items())
    return value
