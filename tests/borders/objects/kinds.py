"""Classes of all kinds whose objects change, with the same attributes and methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import attrs
import msgspec
import pydantic

from reactive import tracked

T = TypeVar("T")


@tracked
class Plain:
    """A class that is made a dataclass."""

    id: int
    total: float
    customer: str | None = None
    note: str = ""

    def with_tax(self) -> float:
        return self.total * 1.5

    @property
    def is_large(self) -> bool:
        return self.total > 10


@tracked
@dataclass
class Data:
    id: int
    total: float
    customer: str | None = None
    note: str = field(default_factory=str)

    with_tax = Plain.with_tax
    is_large = Plain.is_large


@tracked
@dataclass(slots=True)
class Slotted:
    id: int
    total: float
    customer: str | None = None
    note: str = ""

    with_tax = Plain.with_tax
    is_large = Plain.is_large


@tracked
@attrs.define
class Attrs:
    id: int
    total: float
    customer: str | None = None
    note: str = ""

    with_tax = Plain.with_tax
    is_large = Plain.is_large


@tracked
@attrs.define(slots=False, eq=False)
class AttrsOpen:
    id: int
    total: float
    customer: str | None = None
    note: str = ""

    with_tax = Plain.with_tax
    is_large = Plain.is_large


@tracked
class Struct(msgspec.Struct):
    id: int
    total: float
    customer: str | None = None
    note: str = ""

    with_tax = Plain.with_tax
    is_large = Plain.is_large


@tracked
class Model(pydantic.BaseModel):
    id: int
    total: float
    customer: str | None = None
    note: str = ""

    def with_tax(self) -> float:
        return self.total * 1.5

    @property
    def is_large(self) -> bool:
        return self.total > 10


@tracked
class Checked(pydantic.BaseModel, validate_assignment=True):
    id: int
    total: float
    customer: str | None = None
    note: str = ""

    def with_tax(self) -> float:
        return self.total * 1.5

    @property
    def is_large(self) -> bool:
        return self.total > 10


@tracked
class Annotated:
    id: int
    total: float
    customer: str | None
    note: str = ""

    def __init__(self, id: int, total: float, customer: str | None = None, note: str = "") -> None:
        self.id, self.total, self.customer = id, total, customer
        if note:
            self.note = note

    with_tax = Plain.with_tax
    is_large = Plain.is_large


@tracked
class WithSlots:
    __slots__ = ("customer", "id", "note", "total")
    id: int
    total: float
    customer: str | None
    note: str

    def __init__(self, id: int, total: float, customer: str | None = None, note: str = "") -> None:
        self.id, self.total, self.customer, self.note = id, total, customer, note

    with_tax = Plain.with_tax
    is_large = Plain.is_large


class Described:
    """A class that stores one of its attributes in another one."""

    id: int
    total: float
    customer: str | None
    note: str

    def __init__(self, id: int, total: float, customer: str | None = None, note: str = "") -> None:
        self.id, self.total, self.customer, self.note = id, total, customer, note

    with_tax = Plain.with_tax
    is_large = Plain.is_large


def _get(self: Any) -> float:
    found: float = self._total
    return found


def _set(self: Any, value: float) -> None:
    if not isinstance(value, float | int):
        raise TypeError(value)
    self._total = value


Described.total = property(_get, _set)  # type: ignore[assignment]
Described = tracked(Described)  # type: ignore[misc]


@tracked
@dataclass
class Boxed(Generic[T]):
    id: int
    total: float
    customer: T | None = None
    note: str = ""

    with_tax = Plain.with_tax
    is_large = Plain.is_large


class Special(Data):
    """A subclass that says nothing of being tracked."""


KINDS: tuple[Any, ...] = (
    *(Plain, Data, Slotted, Attrs, AttrsOpen, Struct, Model, Checked),
    *(Annotated, WithSlots, Described, Boxed, Special),
)


def behind(instance: Any, name: str, value: Any) -> None:
    """Store a value so that the library does not notice."""
    for base in type(instance).__mro__:
        found: Any = vars(base).get(name)
        if hasattr(type(found), "__set__") and not isinstance(found, property):
            found.__set__(instance, value)
            return
    if isinstance(instance, Described) and name == "total":
        name = "_total"
    vars(instance)[name] = value
