"""The constant pool as javap prints it."""

from __future__ import annotations

import math
import re
import struct

from examples.findbugs.facts import Constant

LINE = re.compile(r" *#(\d+) = (\w+)")
WIDTH = len("InterfaceMethodref ")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


class Pool:
    """The constants of a class, by their indices."""

    def __init__(self, lines: list[str]) -> None:
        self.constants: dict[int, tuple[str, str]] = {}
        for line in lines:
            match = LINE.match(line)
            assert match, line
            self.constants[int(match[1])] = match[2], line[match.start(2) + WIDTH :]

    def tag(self, index: int) -> str:
        return self.constants[index][0]

    def numbers(self, index: int) -> list[int]:
        """Return the indices to which a constant refers."""
        return [int(n) for n in re.findall(r"#?(\d+)", self.constants[index][1].split("//")[0])]

    def text(self, index: int) -> str:
        tag, raw = self.constants[index]
        assert tag == "Utf8"
        return unescaped(raw)

    def name(self, index: int) -> str:
        """The name of a class."""
        assert self.tag(index) == "Class"
        return self.text(*self.numbers(index))

    def texts(self, index: int) -> tuple[str, str]:
        """The name and the descriptor of a NameAndType."""
        name, descriptor = self.numbers(index)
        return self.text(name), self.text(descriptor)

    def member(self, index: int) -> tuple[str, str, str]:
        """The class, name and descriptor of a field or method."""
        owner, pair = self.numbers(index)
        return (self.name(owner), *self.texts(pair))

    def loadable(self, index: int) -> tuple[str, Constant]:
        """The type and value of a constant that ldc pushes."""
        tag, raw = self.constants[index]
        numbers = self.numbers(index)
        match tag:
            case "String":
                return "Ljava/lang/String;", self.text(*numbers)
            case "Class":
                return "Ljava/lang/Class;", self.name(index)
            case "MethodType":
                return "Ljava/lang/invoke/MethodType;", self.text(*numbers)
            case "MethodHandle":
                owner, name, descriptor = self.member(numbers[1])
                return "Ljava/lang/invoke/MethodHandle;", f"{owner}.{name}{descriptor}"
            case "Dynamic":
                name, descriptor = self.texts(numbers[1])
                return descriptor, name
            case _:
                letter = {"Integer": "I", "Long": "J", "Float": "F", "Double": "D"}[tag]
                return letter, self.value(tag, raw)

    @staticmethod
    def value(tag: str, raw: str) -> Constant:
        """A number or string as javap shows it."""
        match tag:
            case "Int" | "Integer":
                return int(raw)
            case "Long":
                return int(raw.removesuffix("l"))
            case "Float":
                return _single(_double(raw.removesuffix("f")))
            case "Double":
                return _double(raw.removesuffix("d"))
            case _:
                return unescaped(raw)


def unescaped(raw: str) -> str:
    return ESCAPE.sub(_character, raw) if "\\" in raw else raw


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else ESCAPED.get(code, code)


def _double(raw: str) -> float:
    return math.nan if raw == "NaN" else float(raw)


def _single(value: float) -> float:
    """Return the 32-bit number that javap showed with its shortest distinct digits."""
    rounded: float = struct.unpack(">f", struct.pack(">f", value))[0]
    return value if value != value else rounded
