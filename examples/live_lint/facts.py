"""The facts that one file states: the rows of all tables.

A fact without a line number is unchanged when lines above it are edited, so joins across many files
read only such facts. A `symbol` is the full dotted name of a definition:
`email.message.Message.get`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Module:
    """A file that can be imported by a name."""

    file: str
    name: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that Python cannot read."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Silenced:
    """A line with a `noqa` comment."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name.

    `import a.b` has the target and the full name `a.b` and binds `a`, which means `a`;
    `from a import b as c` has the target `a` and the full name `a.b` and binds `c`, which means
    `a.b`; a star binds `*`.
    """

    file: str
    line: int
    module: str
    bound: str
    target: str
    full: str
    means: str
    optional: bool
    """Inside a `try` or `with` that is there for imports that fail."""
    deferred: bool
    """Not run when the module is imported: inside a function, for type checkers only, or for when
    the module is run as a program."""
    kept: bool
    """There for others: in an `__init__.py`, `import a as a`, `__all__`, or of `__future__`."""


@dataclass(frozen=True, slots=True)
class Export:
    """An entry of `__all__`."""

    file: str
    line: int
    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Binding:
    """A name of a module, and what it stands for: a symbol of this or of another module."""

    module: str
    name: str
    full: str


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A module that may have names which its text does not tell: `import *`, `globals()`, or a
    text that Python cannot read."""

    module: str


@dataclass(frozen=True, slots=True)
class NameUse:
    """A module reads a name that is no parameter there."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Internal:
    """A private definition without decorators, which runs only if something uses it. No test."""

    file: str
    line: int
    module: str
    name: str
    symbol: str


@dataclass(frozen=True, slots=True)
class PrivateUse:
    """A module mentions a private name: as a name, an attribute, an import or a string."""

    module: str
    name: str
    user: str
    """The symbol of the internal definition that has to run for that; "" if there is none."""
    bound: bool
    """True for a use by name, which can only mean the module's own definition."""


@dataclass(frozen=True, slots=True)
class Dotted:
    """A module reads `head.rest`, and `head` is imported."""

    module: str
    head: str
    rest: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method."""

    file: str
    line: int
    module: str
    owner: str
    """The symbol of the module, class or function around it."""
    name: str
    symbol: str
    kind: Literal["function", "method", "nested"]
    required: int
    """Parameters that a call must give; not counting `self` or `cls`."""
    positional: int
    """Parameters that a call can give by position; not counting `self` or `cls`."""
    open: bool
    """Takes `*args` or `**kwargs`."""
    plain: bool
    """True without decorators that change its signature."""
    stub: bool
    """Does nothing, as abstract methods and placeholders do."""
    conditional: bool
    """Inside an `if`, `try` or loop of its scope."""
    reads: int
    """The number of reads of this name in the file before the definition."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class."""

    file: str
    line: int
    owner: str
    name: str
    kind: Literal["function", "method", "nested"]
    plain: bool
    conditional: bool
    reads: int


@dataclass(frozen=True, slots=True)
class Base:
    """A class names a base: `head`, or `head.rest`."""

    symbol: str
    module: str
    head: str
    rest: str


@dataclass(frozen=True, slots=True)
class InitCall:
    """A method of a class calls the `__init__` of something, or takes it to call it later."""

    symbol: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A function has a parameter, other than `self`, `cls`, `_name`, `*args` and `**kwargs`."""

    function: str
    name: str


@dataclass(frozen=True, slots=True)
class ParameterUse:
    """The function, or one inside it, reads the parameter."""

    function: str
    name: str


@dataclass(frozen=True, slots=True)
class Default:
    """A parameter's default value that is made once and can be changed."""

    file: str
    line: int
    function: str
    parameter: str
    value: str


@dataclass(frozen=True, slots=True)
class Handler:
    """An `except` clause."""

    file: str
    line: int
    caught: tuple[str, ...]
    """Names of the exceptions, the last part of each; none for a bare `except`."""
    hides: bool
    """It does nothing with the exception."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an imported name, or of an attribute of one, without `*` and `**`, and not where
    a `TypeError` is expected."""

    file: str
    line: int
    module: str
    head: str
    rest: str
    positional: int
    keywords: int


Fact: TypeAlias = (
    Module
    | Broken
    | Silenced
    | Import
    | Export
    | Binding
    | Dynamic
    | NameUse
    | Internal
    | PrivateUse
    | Dotted
    | Function
    | Class
    | Base
    | InitCall
    | Parameter
    | ParameterUse
    | Default
    | Handler
    | Call
)


@dataclass(frozen=True, slots=True)
class Known:
    """A module outside the analysed files that an import may name. No file's fact."""

    name: str
