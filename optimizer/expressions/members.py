"""Attributes of the rows of a class: its fields, and other attributes that a row may have.

    @dataclass(frozen=True)
    class Sale:                     lacks(Sale, "prise")    True
        id: int                     lacks(Sale, "price")    False
        price: float                lacks(object, "prise")  False: its instances may have any field

Only classes of records are examined: dataclasses, named tuples, `msgspec.Struct`, attrs classes and
pydantic models. A table of a class has rows of its subclasses too, so that an attribute is lacking
only if no existing subclass may have it. A class may have attributes that it does not declare if it
has a `__getattr__` or `__getattribute__`, or if its instances have a `__dict__` that written code,
not only generated code, can write to.

Cost: O(subclasses) for a name that the class itself does not have; nothing is cached.
"""

from __future__ import annotations

import dis
import inspect
from abc import ABCMeta
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

from optimizer.errors import PlanError
from optimizer.kinds.fields import MODEL, OURS, TRACKED, is_ours, is_record, members

CONSTRUCTORS = frozenset({"__init__", "__post_init__", "__attrs_post_init__", "__setstate__"})
CONSTRUCTORS |= {"__attrs_pre_init__", "model_post_init"}
WRITES = frozenset({"__dict__", "__setattr__", "setattr", "vars"})
"""Names in code that may give an object any attribute."""


class MissingAttribute:
    """An attribute of a class of records that its rows do not have, with the reason.

    A callable that reads it is refused when the query is built; any other reader gets an error.
    """

    def __init__(self, why: str) -> None:
        self.why = why

    def __get__(self, row: object, kind: type | None = None) -> MissingAttribute:
        if row is None:
            return self
        raise UnreadableError(self.why)


class UnreadableError(PlanError, AttributeError):
    """The `PlanError` of an attribute that cannot be read; `hasattr` is false for it."""


UnreadableError.__name__ = UnreadableError.__qualname__ = PlanError.__name__


def why_unreadable(kind: type, name: str) -> str | None:
    """Return the reason why rows of a class do not have an attribute of it; None if they may have
    it."""
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return found.why if isinstance(found, MissingAttribute) else None


def row_class(kind: Any) -> Any:
    """Return the class of a table's rows: for a tracked class, the class of its snapshots."""
    options = getattr(kind, TRACKED, None)
    return kind if options is None else options.row_class(kind)


def row_of_instance(instance: Any) -> Any:
    """Return an instance as a row: the snapshot of a tracked object."""
    options = getattr(instance, TRACKED, None)
    return instance if options is None else options.row_of(instance)


def has(kind: type, name: str) -> bool:
    """Return True if instances of a record have an attribute, as far as the class declares."""
    return (
        _declares(kind, name)
        or any(_declares(base, name) for base in kind.__mro__[1:])
        or name in members(kind)
        or name in getattr(kind, "__private_attributes__", ())
        or any(name in _own_annotations(base) for base in kind.__mro__)
    )


def _declares(base: type, name: str) -> bool:
    return name in base.__dict__ and not isinstance(base.__dict__[name], MissingAttribute)


def lacks(kind: type, name: str) -> bool:
    """Return True if no row of a table of this class can have an attribute."""
    if not is_record(kind) or name.startswith("__") or has(kind, name):
        return False
    if inspect.isabstract(kind) and not type.__subclasses__(kind):
        return False  # its rows are of classes that are not defined yet
    return all(not has(each, name) and _is_closed(each) for each in family(kind))


def length(kind: type) -> int | None:
    """Return the number of items of a named tuple's rows; None if it is not certain."""
    if not is_record(kind) or not issubclass(kind, tuple):
        return None
    every: list[Any] = [*family(kind)]
    lengths = {len(members(each)) for each in every}
    plain = all(each.__getitem__ is tuple.__getitem__ for each in every)
    return lengths.pop() if plain and len(lengths) == 1 and _has_generated_new(kind) else None


def makes_instances(kind: Any) -> bool:
    """Return True if calling a record's class makes an instance of it, and of no subclass."""
    if not is_ours(type(kind)):
        return False
    return kind.__new__ is object.__new__ or length(kind) is not None


def family(kind: type) -> list[type]:
    """Return the class and all its subclasses, each once."""
    found: dict[type, None] = {kind: None}
    waiting = [kind]
    while waiting:
        below: list[type] = type.__subclasses__(waiting.pop())
        new = [each for each in below if each not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _own_annotations(base: type) -> Any:
    """Return the own annotations of a user's class; empty for other classes, or if they raise."""
    if is_ours(base):
        return ()
    try:
        return inspect.get_annotations(base)
    except Exception:  # evaluating an annotation may raise any exception
        return ()


def _is_closed(kind: type) -> bool:
    """Return True if instances have only the attributes that the class declares."""
    return (
        _reads_plainly(kind)
        and not _has_virtual_subclasses(kind)
        and (
            not kind.__dictoffset__
            or hasattr(kind, TRACKED)  # a snapshot has only declared attributes
            or (_is_frozen(kind) and not _writes_to_itself(kind))
        )
    )


def _reads_plainly(kind: type) -> bool:
    """Return True if no class of the user computes attributes by `__getattr__` or a metaclass."""
    own = [
        base
        for base in kind.__mro__
        for name in ("__getattr__", "__getattribute__")
        if name in vars(base)
    ]
    return all(map(is_ours, own)) and is_ours(type(kind))


def _has_virtual_subclasses(kind: type) -> bool:
    """Return True if other classes are registered as subclasses of an abstract class."""
    if not isinstance(kind, ABCMeta):
        return False
    try:
        from _abc import _get_dump  # type: ignore[import-not-found]

        return bool(_get_dump(kind)[0])
    except Exception:  # it is an implementation detail of CPython
        return True


def _is_frozen(kind: Any) -> bool:
    """Return True if no other attribute can be assigned to an instance."""
    if hasattr(kind, MODEL):
        return getattr(kind, "model_config", {}).get("extra") != "allow"
    if hasattr(kind, "__attrs_attrs__"):
        return getattr(kind.__setattr__, "__name__", "") == "_frozen_setattrs"
    if "__dataclass_params__" in vars(kind):
        return bool(kind.__dataclass_params__.frozen)
    config = getattr(kind, "__struct_config__", None)
    return config is not None and bool(config.frozen)


def _writes_to_itself(kind: type) -> bool:
    """Return True if code of the class may give its instances attributes that it does not
    declare."""
    functions = [f for base in kind.__mro__ if not is_ours(base) for f in _written_functions(base)]
    return any(
        f.__name__ == "__new__"
        or WRITES & _names_in_code(f.__code__)
        or (f.__name__ in CONSTRUCTORS and _hands_itself_on(f.__code__))
        for f in functions
    )


def _written_functions(base: type) -> Iterator[FunctionType]:
    """Iterate over the functions of a class that are not generated."""
    for value in vars(base).values():
        inner = [value, *(getattr(value, n, None) for n in ("__func__", "fget", "func", "wrapped"))]
        for function in inner:
            function = getattr(function, "__func__", function)
            if isinstance(function, FunctionType) and not _is_generated(function):
                yield function


def _is_generated(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    package = (function.__module__ or "").partition(".")[0]
    return file == "<string>" or file.startswith("<attrs generated") or package in OURS


def _names_in_code(code: CodeType) -> set[str]:
    """Return the names that code, and code inside it, uses for globals and attributes."""
    inner = [_names_in_code(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)


def _hands_itself_on(code: CodeType) -> bool:
    """Return True if the first parameter is used other than to read or call its attributes."""
    own = code.co_varnames[0] if code.co_varnames else ""
    if own in code.co_cellvars:
        return True
    for now, then in pairwise(dis.get_instructions(code)):
        uses = now.argval == own or (isinstance(now.argval, tuple) and own in now.argval)
        if uses and now.opname.startswith("LOAD_FAST") and not _reads_attribute(now, then, own):
            return True
    return False


def _reads_attribute(now: dis.Instruction, then: dis.Instruction, own: str) -> bool:
    """Return True if `now` loads the variable `own` last, and `then` reads an attribute of it."""
    last = now.argval[-1] if isinstance(now.argval, tuple) else now.argval
    return last == own and then.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")


def _has_generated_new(kind: type) -> bool:
    code = getattr(kind.__new__, "__code__", None)
    return code is not None and code.co_filename.startswith("<string>")
