"""The facts of one file about the flow of objects: the rows of all tables.

A variable is named by its scope: `json.decoder.JSONDecoder.decode:s`, or `json:loads` for one of a
module. Each expression that makes an object, or that is on the way of one, has a variable of its
own, numbered in its scope (`...decode:3`), so a line more or less elsewhere changes no name.

All elements of a list, dict, set, tuple or generator are its one field `[]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

ELEMENTS = "[]"
SELF = "self"
FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class Site:
    """Objects of a type that are made at one place, taken as one.

    The place is the variable of an expression, or a function's own symbol; "" for an object that an
    unknown caller passes.
    """

    at: str
    type: str

    def __str__(self) -> str:
        if self.type == FUNCTION:
            return self.at
        return f"{self.type} from {self.at}" if self.at else f"some {self.type}"


@dataclass(frozen=True, slots=True)
class New:
    """A variable is given a new object."""

    variable: str
    site: Site


@dataclass(frozen=True, slots=True)
class Assign:
    """An assignment: all objects of the source may be in the target."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Load:
    """The target is given what the field of the base holds."""

    target: str
    base: str
    field: str


@dataclass(frozen=True, slots=True)
class Store:
    """The field of the base is given what the source holds."""

    base: str
    field: str
    source: str


@dataclass(frozen=True, slots=True)
class Define:
    """A variable names a class."""

    variable: str
    symbol: str


@dataclass(frozen=True, slots=True)
class Base:
    """A class names one of its bases by a variable."""

    symbol: str
    variable: str


@dataclass(frozen=True, slots=True)
class Method:
    """A class defines a method."""

    owner: str
    name: str
    function: str


@dataclass(frozen=True, slots=True)
class Formal:
    """A function takes an argument into a variable: by position ("0", "1"), or by name.

    Positions do not count the `self` of a method, whose slot is `self`.
    """

    function: str
    slot: str
    variable: str


@dataclass(frozen=True, slots=True)
class Return:
    """A function returns what a variable holds."""

    function: str
    variable: str


@dataclass(frozen=True, slots=True)
class Actual:
    """A call passes what a variable holds."""

    call: str
    slot: str
    variable: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the object in a variable. Its result has the call's own name as a variable."""

    call: str
    callee: str


@dataclass(frozen=True, slots=True)
class Invoke:
    """A call of a method of the object in a variable, or of a function in its field."""

    call: str
    receiver: str
    method: str


@dataclass(frozen=True, slots=True)
class SuperCall:
    """A call `super().method(...)` in a class."""

    call: str
    owner: str
    method: str


Fact: TypeAlias = (
    New
    | Assign
    | Load
    | Store
    | Define
    | Base
    | Method
    | Formal
    | Return
    | Actual
    | Call
    | Invoke
    | SuperCall
)
