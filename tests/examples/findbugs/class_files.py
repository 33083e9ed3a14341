"""Class files made by hand, byte by byte, for content that no compiler writes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from examples.findbugs.facts import Fact, Facts

U2 = struct.Struct(">H").pack
U4 = struct.Struct(">I").pack
RETURN = b"\xb1"

Made: TypeAlias = tuple[str, Callable[[], bytes], str]
"""Fault of a file, function that makes the file, and a part of the message."""
Row = TypeVar("Row", bound=Fact)


class Constants:
    """A constant pool that grows: each method adds a constant and returns its index."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.indices: dict[bytes, int] = {}
        self.count = 1

    def add(self, tag: int, content: bytes) -> int:
        entry = bytes([tag]) + content
        if entry not in self.indices:
            self.indices[entry] = self.count
            self.entries.append(entry)
            self.count += 2 if tag in (5, 6) else 1
        return self.indices[entry]

    def text(self, text: str) -> int:
        return self.raw(modified_utf8(text))

    def raw(self, encoded: bytes) -> int:
        return self.add(1, U2(len(encoded)) + encoded)

    def integer(self, value: int) -> int:
        return self.add(3, struct.pack(">i", value))

    def single(self, value: float) -> int:
        return self.add(4, struct.pack(">f", value))

    def long(self, value: int) -> int:
        return self.add(5, struct.pack(">q", value))

    def double(self, value: float) -> int:
        return self.add(6, struct.pack(">d", value))

    def cls(self, name: str) -> int:
        return self.add(7, U2(self.text(name)))

    def string(self, text: str) -> int:
        return self.add(8, U2(self.text(text)))

    def pair(self, name: str, descriptor: str) -> int:
        return self.add(12, U2(self.text(name)) + U2(self.text(descriptor)))

    def member(self, tag: int, owner: str, name: str, descriptor: str) -> int:
        return self.add(tag, U2(self.cls(owner)) + U2(self.pair(name, descriptor)))

    def field(self, owner: str, name: str, descriptor: str) -> int:
        return self.member(9, owner, name, descriptor)

    def method(self, owner: str, name: str, descriptor: str) -> int:
        return self.member(10, owner, name, descriptor)

    def interface_method(self, owner: str, name: str, descriptor: str) -> int:
        return self.member(11, owner, name, descriptor)

    def handle(self, kind: int, member: int) -> int:
        return self.add(15, bytes([kind]) + U2(member))

    def method_type(self, descriptor: str) -> int:
        return self.add(16, U2(self.text(descriptor)))

    def dynamic(self, name: str, descriptor: str) -> int:
        return self.add(17, U2(0) + U2(self.pair(name, descriptor)))

    def invoke_dynamic(self, name: str, descriptor: str) -> int:
        return self.add(18, U2(0) + U2(self.pair(name, descriptor)))

    def attribute(self, name: str, content: bytes) -> bytes:
        return U2(self.text(name)) + U4(len(content)) + content

    def code(self, code: bytes, handlers: Sequence[bytes] = (), *attributes: bytes) -> bytes:
        """A Code attribute."""
        content = U2(7) + U2(8) + U4(len(code)) + code + table(handlers) + table(attributes)
        return self.attribute("Code", content)

    def declare(self, access: int, name: str, descriptor: str, *attributes: bytes) -> bytes:
        """A field or a method."""
        return U2(access) + U2(self.text(name)) + U2(self.text(descriptor)) + table(attributes)


def class_file(
    constants: Constants,
    *,
    version: tuple[int, int] = (52, 0),
    access: int = 0x21,
    name: str = "p/A",
    above: str | None = "java/lang/Object",
    interfaces: Sequence[str] = (),
    fields: Sequence[bytes] = (),
    methods: Sequence[bytes] = (),
    attributes: Sequence[bytes] = (),
) -> bytes:
    """A whole class file."""
    header = U2(access) + U2(constants.cls(name)) + U2(constants.cls(above) if above else 0)
    listed = [U2(constants.cls(interface)) for interface in interfaces]
    body = b"".join(map(table, (listed, fields, methods, attributes)))
    major, minor = version
    pool = U2(constants.count) + b"".join(constants.entries)
    return b"\xca\xfe\xba\xbe" + U2(minor) + U2(major) + pool + header + body


def one_method(constants: Constants, code: bytes, handlers: Sequence[bytes] = ()) -> bytes:
    """A class file with the method `m()V` alone, of some code."""
    method = constants.declare(9, "m", "()V", constants.code(code, handlers))
    return class_file(constants, methods=[method])


def rows(found: Facts, kind: type[Row]) -> list[Row]:
    """The facts of a kind."""
    return [row for values in found.values() for row in values if isinstance(row, kind)]


def table(entries: Sequence[bytes]) -> bytes:
    """Return the number of entries, followed by the entries."""
    return U2(len(entries)) + b"".join(entries)


def modified_utf8(text: str) -> bytes:
    units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
    return b"".join(_unit(unit) for (unit,) in units)


def _unit(unit: int) -> bytes:
    if 0 < unit < 0x80:
        return bytes([unit])
    if unit < 0x800:
        return bytes([0xC0 | unit >> 6, 0x80 | unit & 0x3F])
    return bytes([0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F])
