"""Invalid code: each impossible instruction is an error with its place and reason."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from examples.findbugs.classfile import ClassFileError, read
from tests.examples.findbugs.class_files import (
    RETURN,
    U2,
    Constants,
    Made,
    one_method,
)


def of_code(content: bytes) -> bytes:
    return one_method(Constants(), content)


def pushed(tag: int, content: bytes) -> bytes:
    """A class whose code pushes a constant."""
    c = Constants()
    return one_method(c, b"\x13" + U2(c.add(tag, content)) + RETURN)


def called(opcode: int, make: Callable[[Constants], int]) -> bytes:
    """A class whose code has an instruction that refers to a constant."""
    c = Constants()
    return one_method(c, bytes([opcode]) + U2(make(c)) + bytes(2) + RETURN)


def handled(*handler: int) -> bytes:
    return one_method(Constants(), bytes(9) + RETURN, [struct.pack(">4H", *handler)])


SWITCH = bytes(3)
BAD: list[Made] = [
    ("handler 3 to 3", lambda: handled(3, 3, 0, 0), "from 3 to 3 at 0 is not in the 10 bytes"),
    ("handler beyond", lambda: handled(0, 11, 0, 0), "from 0 to 11 at 0 is not in the 10 bytes"),
    ("handler at the end", lambda: handled(0, 10, 10, 0), "from 0 to 10 at 10 is not in"),
    ("caught text", lambda: handled(0, 9, 9, 1), "constant 1 is of sort Utf8, Class is needed"),
    *[
        (f"opcode {n}", lambda n=n: of_code(bytes([n, 1])), f"no instruction {n} 1")
        for n in (202, 203, 254, 255)
    ],
    ("wide return", lambda: of_code(b"\xc4\xb1"), "no instruction 196 177"),
    ("wide alone", lambda: of_code(b"\xc4"), "no instruction 196"),
    *[
        (f"cut {n}", lambda n=n: of_code(bytes([n])), "instruction at 0 does not end with the code")
        for n in (16, 17, 18, 21, 132, 153, 169, 170, 171, 182, 185, 188, 197, 200)
    ],
    ("cut wide", lambda: of_code(b"\xc4\x15\0"), "instruction at 0 does not end with the code"),
    ("jump out", lambda: of_code(b"\xa7\x00\x03"), "jumps to 3, out of the code"),
    ("jump before", lambda: of_code(b"\xa7\xff\xff"), "jumps to -1, out of the code"),
    ("far jump", lambda: of_code(b"\xc8\x7f\xff\xff\xff"), "jumps to 2147483647, out of the code"),
    (
        "great tableswitch",
        lambda: of_code(b"\xaa" + SWITCH + struct.pack(">3i", 0, -(2**31), 2**31 - 1)),
        "instruction at 0 does not end with the code",
    ),
    (
        "reverse tableswitch",
        lambda: of_code(b"\xaa" + SWITCH + struct.pack(">3i", 0, 5, 4)),
        "keys from 5 to 4",
    ),
    (
        "tableswitch out",
        lambda: of_code(b"\xaa" + SWITCH + struct.pack(">5i", 0, 5, 6, 24, 4)),
        "jumps to 24, out of the code",
    ),
    (
        "great lookupswitch",
        lambda: of_code(b"\xab" + SWITCH + struct.pack(">2i", 0, 2**31 - 1)),
        "instruction at 0 does not end with the code",
    ),
    ("negative", lambda: of_code(b"\xab" + SWITCH + struct.pack(">2i", 0, -1)), "has -1 keys"),
    (
        "lookupswitch out",
        lambda: of_code(b"\xab" + SWITCH + struct.pack(">6i", 0, 2, 5, -1, 6, 4)),
        "jumps to -1, out of the code",
    ),
    ("array of 12", lambda: of_code(b"\xbc\x0c"), "no primitive type 12"),
    ("array of 3", lambda: of_code(b"\xbc\x03"), "no primitive type 3"),
    ("push nothing", lambda: of_code(b"\x12\x00" + RETURN), "no constant 0"),
    ("push text", lambda: of_code(b"\x12\x01" + RETURN), "sort Utf8, which has no value"),
    ("push long", lambda: pushed(5, bytes(8)), "ldc pushes a constant of type 'J'"),
    ("second half", lambda: called(0x14, lambda c: c.long(1) + 1), "no constant"),
    ("push int as long", lambda: called(0x14, lambda c: c.integer(1)), "constant of type 'I'"),
    ("handle 0", lambda: pushed(15, b"\0\0\1"), "method handle of the unknown kind 0"),
    ("handle 10", lambda: pushed(15, b"\x0a\0\1"), "method handle of the unknown kind 10"),
    ("handle of itself", lambda: pushed(15, b"\1\0\1"), "sort MethodHandle, Fieldref is needed"),
    (
        "handle of no method",
        lambda: called(19, lambda c: c.handle(6, c.method("p/A", "f", "I"))),
        "'I' is no descriptor of a method",
    ),
    (
        "handle of no field",
        lambda: called(19, lambda c: c.handle(1, c.field("p/A", "x", "()V"))),
        "'()V' is no descriptor of a field",
    ),
    ("type of a class", lambda: called(19, lambda c: c.method_type("I")), "'I' is no descriptor"),
    ("string of itself", lambda: pushed(8, U2(1)), "constant 1 is of sort String, Utf8 is needed"),
    ("byte 0", lambda: called(0x13, lambda c: c.add(8, U2(c.raw(b"a\0")))), "a text has a byte 0"),
    (
        "plain UTF-8",
        lambda: called(0x13, lambda c: c.add(8, U2(c.raw("\U0001f600".encode())))),
        "a text has a byte 240",
    ),
    (
        "cut UTF-8",
        lambda: called(0x13, lambda c: c.add(8, U2(c.raw(b"\xe2\x82")))),
        "modified UTF-8",
    ),
    (
        "virtual field",
        lambda: called(182, lambda c: c.field("p/A", "x", "I")),
        "Methodref is needed",
    ),
    (
        "virtual of interface",
        lambda: called(182, lambda c: c.interface_method("I", "f", "()V")),
        "sort InterfaceMethodref, Methodref is needed",
    ),
    (
        "interface of class",
        lambda: called(185, lambda c: c.method("p/A", "f", "()V")),
        "sort Methodref, InterfaceMethodref is needed",
    ),
    (
        "static dynamic",
        lambda: called(184, lambda c: c.invoke_dynamic("f", "()V")),
        "sort InvokeDynamic, Methodref or InterfaceMethodref is needed",
    ),
    (
        "dynamic method",
        lambda: called(186, lambda c: c.method("p/A", "f", "()V")),
        "InvokeDynamic is needed",
    ),
    (
        "call of a field type",
        lambda: called(184, lambda c: c.method("p/A", "f", "I")),
        "'I' is no descriptor of a method",
    ),
    (
        "field of a method type",
        lambda: called(178, lambda c: c.field("p/A", "x", "()V")),
        "'()V' is no descriptor of a field",
    ),
    (
        "name of a field",
        lambda: called(178, lambda c: c.field("p/A", "x/y", "I")),
        "'x/y' is no name of a field",
    ),
    ("new text", lambda: called(187, lambda c: c.text("p/A")), "sort Utf8, Class is needed"),
    ("cast to [V", lambda: called(192, lambda c: c.cls("[V")), "'[V' is no name of a class"),
    (
        "no such constant",
        lambda: called(187, lambda c: 9999),
        "there is no constant 9999",
    ),
]


@pytest.mark.parametrize(("made", "message"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_what_is_wrong_with_an_instruction_is_said(made: Callable[[], bytes], message: str) -> None:
    with pytest.raises(ClassFileError, match=r"^p/A.class: offset \d+: ") as caught:
        read(made(), "p/A.class")
    assert message in str(caught.value)


def test_one_call_of_two_kinds_must_suit_both() -> None:
    c = Constants()
    ref = U2(c.method("p/A", "f", "()V"))
    with pytest.raises(ClassFileError, match="InterfaceMethodref is needed"):
        read(one_method(c, b"\xb6" + ref + b"\xb9" + ref + b"\1\0" + RETURN), "A.class")


def test_dimensions_are_those_of_the_type() -> None:
    for dimensions in (0, 3):
        c = Constants()
        content = b"\xc5" + U2(c.cls("[[I")) + bytes([dimensions]) + RETURN
        with pytest.raises(ClassFileError, match=f"has not {dimensions} dimensions"):
            read(one_method(c, content), "A.class")


def test_the_offset_of_a_wrong_instruction_is_its_own() -> None:
    data = of_code(bytes(5) + b"\xfe")
    with pytest.raises(ClassFileError) as caught:
        read(data, "A.class")
    assert data[caught.value.offset] == 0xFE
