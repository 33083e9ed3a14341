"""The constant pool of a class file, which maps indices to constants.

A pool knows the place of each constant. A constant is read and checked at its first use and then
cached, so that all rows of a file share one object for a name, a type or a tuple of parameters.

Source: the Java Virtual Machine Specification, section 4.4.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from struct import Struct
from types import MappingProxyType
from typing import Any, TypeAlias

from examples.findbugs.reader import descriptors, modified_utf8
from examples.findbugs.reader.cursor import U2, Cursor, Malformed
from examples.findbugs.reader.descriptors import Signature

Call: TypeAlias = tuple[str | None, str, tuple[str, ...], str]
"""The class, name, parameters and result of a method; the class of a dynamic call is None."""

TEXT, INTEGER, FLOAT, LONG, DOUBLE, CLASS, STRING = 1, 3, 4, 5, 6, 7, 8
FIELD, METHOD, INTERFACE_METHOD, NAME_AND_TYPE = 9, 10, 11, 12
METHOD_HANDLE, METHOD_TYPE, DYNAMIC, INVOKE_DYNAMIC, MODULE, PACKAGE = 15, 16, 17, 18, 19, 20

TAGS: Mapping[int, str] = MappingProxyType(
    {
        TEXT: "Utf8",
        INTEGER: "Integer",
        FLOAT: "Float",
        LONG: "Long",
        DOUBLE: "Double",
        CLASS: "Class",
        STRING: "String",
        FIELD: "Fieldref",
        METHOD: "Methodref",
        INTERFACE_METHOD: "InterfaceMethodref",
        NAME_AND_TYPE: "NameAndType",
        METHOD_HANDLE: "MethodHandle",
        METHOD_TYPE: "MethodType",
        DYNAMIC: "Dynamic",
        INVOKE_DYNAMIC: "InvokeDynamic",
        MODULE: "Module",
        PACKAGE: "Package",
    }
)
SIZES = bytes((0, 3, 0, 5, 5, 9, 9, 3, 3, 5, 5, 5, 5, 0, 0, 4, 3, 5, 5, 3, 3)) + bytes(235)
"""The bytes of a constant by its tag, without its characters; 0 for an unknown tag."""
LONGS = (LONG, DOUBLE)
"""These take two indices each."""
PAIR = Struct(">HH")
JOINED = 16
"""The most characters of joined texts for each byte of the file."""


class ConstantPool:
    """The constants of one class file."""

    __slots__ = (
        "_calls",
        "_class_names",
        "_classes",
        "_data",
        "_field_names",
        "_field_types",
        "_fields",
        "_joined",
        "_method_names",
        "_params",
        "_places",
        "_signatures",
        "_texts",
    )

    def __init__(self, data: bytes, places: list[int]) -> None:
        self._data = data
        self._places = places
        self._joined = 0
        self._texts: dict[int, str] = {}
        self._classes: dict[int, str] = {}
        self._class_names: dict[int, str] = {}
        self._field_names: dict[int, str] = {}
        self._field_types: dict[int, str] = {}
        self._method_names: dict[int, str] = {}
        self._signatures: dict[int, Signature] = {}
        self._params: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._fields: dict[int, tuple[str, str, str]] = {}
        self._calls: dict[int, Call] = {}

    def tag(self, index: int) -> int:
        """Return the tag of the constant at an index."""
        place = self._places[index] if index < len(self._places) else 0
        if not place:
            raise Malformed(f"there is no constant {index}")
        return self._data[place - 1]

    def parts(self, index: int, shape: Struct, *tags: int) -> tuple[Any, ...]:
        """Return the numbers of a constant, which must have one of some tags."""
        tag = self.tag(index)
        if tag not in tags:
            wanted = " or ".join(TAGS[tag] for tag in tags)
            raise Malformed(f"constant {index} is of sort {TAGS[tag]}, {wanted} is needed")
        return shape.unpack_from(self._data, self._places[index])

    def text(self, index: int) -> str:
        """Return the text at an index."""
        found = self._texts.get(index)
        if found is None:
            (length,) = self.parts(index, U2, TEXT)
            start = self._places[index] + U2.size
            found = modified_utf8.decode(self._data[start : start + length])
            found = self._texts[index] = sys.intern(found)
        return found

    def class_name(self, index: int) -> str:
        """Return the name of the class at an index; its descriptor if it is an array."""
        found = self._classes.get(index)
        if found is None:
            (name,) = self.parts(index, U2, CLASS)
            check = descriptors.class_name
            found = self._classes[index] = self._checked(self._class_names, name, check)
        return found

    def field_type(self, index: int) -> str:
        """Return the text at an index, the descriptor of a field."""
        return self._checked(self._field_types, index, descriptors.field_type)

    def field_name(self, index: int) -> str:
        """Return the text at an index, the name of a field."""
        return self._checked(self._field_names, index, descriptors.field_name)

    def method_name(self, index: int) -> str:
        """Return the text at an index, the name of a method."""
        return self._checked(self._method_names, index, descriptors.method_name)

    def signature(self, index: int) -> Signature:
        """Return the parameters and the result that the text at an index describes."""
        found = self._signatures.get(index)
        if found is None:
            params, ret = descriptors.signature(self.text(index))
            found = self._signatures[index] = self._params.setdefault(params, params), ret
        return found

    def name_and_type(self, index: int) -> tuple[int, int]:
        """Return the indices of the texts of a NameAndType."""
        name, descriptor = self.parts(index, PAIR, NAME_AND_TYPE)
        return name, descriptor

    def field(self, index: int) -> tuple[str, str, str]:
        """Return the class, name and type of the field at an index."""
        found = self._fields.get(index)
        if found is None:
            owner, pair = self.parts(index, PAIR, FIELD)
            name, kind = self.name_and_type(pair)
            field = self.field_name(name), self.field_type(kind)
            found = self._fields[index] = self.class_name(owner), *field
        return found

    def call(self, index: int, *tags: int) -> Call:
        """Return the receiver, method and signature of the method at an index."""
        found = self._calls.get(index)
        if found is None or self.tag(index) not in tags:
            owner, pair = self.parts(index, PAIR, *tags)
            name, descriptor = self.name_and_type(pair)
            receiver = None if self.tag(index) == INVOKE_DYNAMIC else self.class_name(owner)
            method = self.method_name(name)
            found = self._calls[index] = (receiver, method, *self.signature(descriptor))
        return found

    def method_key(self, name: int, descriptor: int) -> str:
        """Return the key of the method whose name and descriptor are the texts at two indices."""
        self.signature(descriptor)
        return self.join(self.method_name(name), self.text(descriptor))

    def join(self, *texts: str) -> str:
        """Return the texts as one.

        A small file could ask for many long names with many long descriptors each, without end:
        no file that a compiler writes comes near the bound.
        """
        self._joined += sum(map(len, texts))
        if self._joined > JOINED * len(self._data):
            raise Malformed("the names of its methods are too long for so small a file")
        return "".join(texts)

    def _checked(self, kept: dict[int, str], index: int, check: Callable[[str], str]) -> str:
        """Return the text at an index, checked once: it may be long, and many may refer to it."""
        found = kept.get(index)
        if found is None:
            found = kept[index] = check(self.text(index))
        return found


def constant_pool(cursor: Cursor) -> ConstantPool:
    """Read the constant pool at the cursor."""
    count = cursor.u2()
    places = _places(cursor, count)
    if cursor.at > len(cursor.data):
        cursor.at = len(cursor.data)
        raise Malformed(f"the file ends before the last of {count - 1} constants does")
    if len(places) > max(count, 1):
        raise Malformed("the last constant takes an index more than there are")
    return ConstantPool(cursor.data, places)


def _places(cursor: Cursor, count: int) -> list[int]:
    """Return the places of the constants, after their tags; the cursor ends at or after them."""
    data, at = cursor.data, cursor.at
    places = [0]
    try:
        while len(places) < count:
            tag = data[at]
            size = SIZES[tag]
            if tag == TEXT:
                size += data[at + 1] << 8 | data[at + 2]
            elif not size:
                break
            places.append(at + 1)
            at += size
            if tag in LONGS:
                places.append(0)
    except IndexError:
        at = len(data) + 1
    cursor.at = at
    if at < len(data) and len(places) < count:
        raise Malformed(f"there is no sort of constant with tag {data[at]}")
    return places
