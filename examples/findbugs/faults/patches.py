"""Change compiled classes in ways that a Java compiler refuses.

They are the ways of old, foreign and broken class files. A patch walks no farther than it must:

    magic minor major | constant pool | access this super interfaces | fields | methods | ...

Source: the Java Virtual Machine Specification, chapter 4.1 (class files), 4.4 (constants).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAJOR, POOL_COUNT, POOL = 6, 8, 10
UTF8, LONG, DOUBLE, CLASS = 1, 5, 6, 7
SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5}
"""Bytes of a constant with its tag, of all kinds but Utf8, by tag."""


def patched(data: bytes, patch: str, words: tuple[str, ...]) -> bytes:
    """Return a class file after one patch, by its name; one of another class is left as it is."""
    match patch, words:
        case "major", (number,):
            return with_number(data, MAJOR, int(number))
        case "rename", (old, new):
            return renamed(data, old, new)
        case "flags", (member, bits):
            owner, _, name = member.rpartition(".")
            return toggled(data, name, int(bits, 0)) if class_name(data) == owner else data
        case "orphan", (name,):
            return orphaned(data) if class_name(data) == name else data
    raise ValueError(f"no patch {patch!r} with {words}")


def renamed(data: bytes, old: str, new: str) -> bytes:
    """Replace the text `old` wherever it is the whole text of a constant."""
    parts, end = [data[:POOL]], POOL
    for constant in constants(data):
        end = constant.end
        is_old = constant.tag == UTF8 and constant.text(data) == old
        parts.append(_utf8(new) if is_old else data[constant.start : end])
    return b"".join((*parts, data[end:]))


def toggled(data: bytes, member: str, bits: int) -> bytes:
    """Change the access flags of the fields and methods of a name."""
    places = [place for place, name in members(data) if name == member]
    if not places:
        raise ValueError(f"{class_name(data)} has no member {member!r}")
    for place in places:
        data = with_number(data, place, number(data, place) ^ bits)
    return data


def orphaned(data: bytes) -> bytes:
    """Remove the superclass; only java.lang.Object has none."""
    return with_number(data, pool_end(data) + 4, 0)


def class_name(data: bytes) -> str:
    """Return the name of the class that a file declares."""
    pool = {constant.index: constant for constant in constants(data)}
    declared = pool[number(data, pool_end(data) + 2)]
    return pool[number(data, declared.start + 1)].text(data)


@dataclass(frozen=True, slots=True)
class Constant:
    """The place of a constant."""

    index: int
    tag: int
    start: int
    end: int

    def text(self, data: bytes) -> str:
        """Return the text of a Utf8 constant."""
        return data[self.start + 3 : self.end].decode()


def constants(data: bytes) -> Iterator[Constant]:
    """Yield the constant pool; long and double numbers take two indices."""
    index, start = 1, POOL
    while index < number(data, POOL_COUNT):
        tag = data[start]
        end = start + (3 + number(data, start + 1) if tag == UTF8 else SIZES[tag])
        yield Constant(index, tag, start, end)
        index, start = index + (2 if tag in (LONG, DOUBLE) else 1), end


def pool_end(data: bytes) -> int:
    """Return the offset of the access flags of the class."""
    return max(constant.end for constant in constants(data))


def members(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield the offset of the access flags of each field and method, and its name."""
    pool = {constant.index: constant for constant in constants(data)}
    place = pool_end(data) + 6
    place += 2 + 2 * number(data, place)
    for _ in ("fields", "methods"):
        count, place = number(data, place), place + 2
        for _ in range(count):
            yield place, pool[number(data, place + 2)].text(data)
            place = _after_attributes(data, place + 6)


def number(data: bytes, place: int) -> int:
    """Return the unsigned number of two bytes at a place."""
    return int.from_bytes(data[place : place + 2])


def with_number(data: bytes, place: int, value: int) -> bytes:
    """Replace the number of two bytes at an offset."""
    return data[:place] + value.to_bytes(2) + data[place + 2 :]


def _after_attributes(data: bytes, place: int) -> int:
    count, place = number(data, place), place + 2
    for _ in range(count):
        place += 6 + int.from_bytes(data[place + 2 : place + 6])
    return place


def _utf8(text: str) -> bytes:
    encoded = text.encode()
    return bytes((UTF8,)) + len(encoded).to_bytes(2) + encoded
