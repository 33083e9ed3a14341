"""Fields of the classes of records, and the annotations of these fields.

Known are dataclasses, named tuples, `msgspec.Struct`, attrs classes and pydantic models.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, get_type_hints

from optimizer.kinds.class_facts import by_class

RECORDS = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__")
MODEL = "__pydantic_validator__"
TRACKED = "__reactive_tracked__"
"""Says of a class that its objects change, and that rows are their snapshots: what of them is in
these, which are equal to themselves only."""
OURS = ("builtins", "abc", "typing", "attr", "attrs", "msgspec", "pydantic", "dataclasses")
"""Packages whose classes and metaclasses do nothing unexpected when an attribute is read."""


def is_record(kind: Any) -> bool:
    """Return True if `kind` is a class that declares its fields."""
    if not isinstance(kind, type):
        return False
    if hasattr(kind, TRACKED):
        return True
    if issubclass(kind, tuple):
        return isinstance(getattr(kind, "_fields", None), tuple)
    return any(hasattr(kind, name) for name in (*RECORDS, MODEL))


def members(kind: Any) -> list[str]:
    """The fields of a record, in the order in which they are declared."""
    return [name for name, _ in _fields(kind)]


def compared(kind: Any) -> tuple[str, ...]:
    """The names of the fields by which records of a class are equal; none for other classes."""
    return tuple(name for name, is_compared in _fields(kind) if is_compared)


def _fields(kind: Any) -> list[tuple[str, bool]]:
    """The fields of a record, and whether records are equal by them."""
    options = getattr(kind, TRACKED, None) if isinstance(kind, type) else None
    if options is None:
        return _declared_fields(kind)
    return [(name, False) for name in options.names(attributes(kind))]


def attributes(kind: Any) -> list[str]:
    """The attributes that a class declares: its fields, or by annotations and slots."""
    fields = [name for name, _ in _declared_fields(kind)]
    return fields if fields or dataclasses.is_dataclass(kind) else _written_down(kind)


def _written_down(kind: type) -> list[str]:
    found: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        hints = inspect.get_annotations(base) if not is_ours(base) else {}
        found |= {name: None for name, hint in hints.items() if "ClassVar" not in str(hint)}
        slots = vars(base).get("__slots__", ())
        found |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    return [name for name in found if not name.startswith("__") and name != "_record_"]


def _declared_fields(kind: Any) -> list[tuple[str, bool]]:
    if dataclasses.is_dataclass(kind):
        return [(field.name, field.compare) for field in dataclasses.fields(kind)]
    if hasattr(kind, "__attrs_attrs__"):
        return [(field.name, bool(field.eq)) for field in kind.__attrs_attrs__]
    declares = ["_fields"] if issubclass(kind, tuple) else ["__struct_fields__"]
    if hasattr(kind, MODEL):
        declares.append("model_fields")
    found = [getattr(kind, name, None) for name in declares]  # of a metaclass: a descriptor
    return [(name, True) for names in found if isinstance(names, tuple | dict) for name in names]


def hints(kind: type) -> dict[str, Any]:
    """The annotations of the fields, evaluated; nothing where that cannot be done, or not yet."""
    try:
        return _hints(kind)
    except Exception:  # whatever evaluating an annotation may raise
        return {}


def annotated(kind: type) -> dict[str, Any]:
    """Return the annotations of a class with the metadata of `Annotated`."""
    try:
        return _hints(kind, True)
    except Exception:  # as above
        return {}


def as_written(kind: type) -> dict[str, Any]:
    """Return the annotations of a class as they are, of which some may be text."""
    bases = reversed(kind.__mro__)
    return {n: hint for base in bases for n, hint in vars(base).get("__annotations__", {}).items()}


def returned_by(function: Any) -> Any:
    """Return the annotation of what a function returns, `Any` where there is none or not yet.

    >>> returned_by(is_record), returned_by(lambda: 1)
    (<class 'bool'>, typing.Any)
    """
    try:
        return get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return Any


@by_class
def _hints(kind: type, extras: bool = False) -> dict[str, Any]:
    found = get_type_hints(kind, include_extras=extras)
    return {name: found[name] for name in members(kind) if name in found}


def is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in OURS
