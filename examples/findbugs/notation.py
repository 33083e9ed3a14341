"""Names of classes, types, fields and methods as Java's programmers write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from examples.findbugs import access

PRIMITIVES: Mapping[str, str] = MappingProxyType(
    {
        "B": "byte",
        "C": "char",
        "D": "double",
        "F": "float",
        "I": "int",
        "J": "long",
        "S": "short",
        "Z": "boolean",
        "V": "void",
    }
)
"""Their names, by descriptor."""


def java(name: str) -> str:
    """Return the name of a class.

    >>> java("java/util/Map$Entry")
    'java.util.Map$Entry'
    """
    return name.replace("/", ".")


def internal(name: str) -> str:
    """Return the name of a class as class files have it.

    >>> internal("java.util.Map$Entry")
    'java/util/Map$Entry'
    """
    return name.replace(".", "/")


def type_name(descriptor: str) -> str:
    """Return the name of a type.

    >>> type_name("[[I"), type_name("Ljava/lang/String;")
    ('int[][]', 'java.lang.String')
    """
    element = descriptor.lstrip("[")
    name = PRIMITIVES.get(element) or java(element[1:-1])
    return name + "[]" * (len(descriptor) - len(element))


def short(name: str) -> str:
    """Return a class or type without its package.

    >>> short("java.util.Map$Entry"), short("int[]")
    ('Map$Entry', 'int[]')
    """
    return name.rpartition(".")[2]


def with_parameters(name: str, params: Iterable[str]) -> str:
    """Return a method with its parameters, of descriptors, with types without packages.

    >>> with_parameters("add", ["I", "Ljava/lang/String;"])
    'add(int, String)'
    """
    return f"{name}({', '.join(short(type_name(param)) for param in params)})"


def modifiers(flags: int) -> Iterator[str]:
    """Return the words for the access flags of a field that others may use.

    >>> [*modifiers(25)]
    ['public', 'static', 'final']
    """
    named = {
        access.PUBLIC: "public",
        access.PROTECTED: "protected",
        access.STATIC: "static",
        access.FINAL: "final",
    }
    return (name for flag, name in named.items() if flags & flag)
