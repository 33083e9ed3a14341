"""Access flags, descriptors and names, as class files have them.

Source: the Java Virtual Machine Specification, 4.1, 4.3, 4.5 to 4.7.6.
"""

from __future__ import annotations

PUBLIC = 0x1
PRIVATE = 0x2
PROTECTED = 0x4
STATIC = 0x8
FINAL = 0x10
SYNCHRONIZED = 0x20
VOLATILE = 0x40
NATIVE = 0x100
INTERFACE = 0x200
ABSTRACT = 0x400
SYNTHETIC = 0x1000


def package(name: str) -> str:
    """Return the package of a class.

    >>> package("java/util/Map$Entry")
    'java/util'
    """
    return name.rpartition("/")[0]


def is_primitive(descriptor: str) -> bool:
    """Return True if a type is none of classes and arrays."""
    return not descriptor.startswith(("L", "["))


def is_array_or_hashtable(descriptor: str) -> bool:
    """Return True if objects of a type can be changed although the field that has one is final."""
    return descriptor.startswith("[") or descriptor == "Ljava/util/Hashtable;"
