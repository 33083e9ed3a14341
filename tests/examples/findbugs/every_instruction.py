"""A class file with every instruction and every kind of fact, and the length of each instruction.

Source: the Java Virtual Machine Specification, chapter 6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.examples.findbugs.class_files import RETURN, U2, Constants, class_file

LENGTHS = (
    (0, 15, 1),
    (16, 16, 2),
    (17, 17, 3),
    (18, 18, 2),
    (19, 20, 3),
    (21, 25, 2),
    (26, 53, 1),
    (54, 58, 2),
    (59, 131, 1),
    (132, 132, 3),
    (133, 152, 1),
    (153, 168, 3),
    (169, 169, 2),
    (172, 177, 1),
    (178, 184, 3),
    (185, 186, 5),
    (187, 187, 3),
    (188, 188, 2),
    (189, 189, 3),
    (190, 191, 1),
    (192, 193, 3),
    (194, 195, 1),
    (197, 197, 4),
    (198, 199, 3),
    (200, 201, 5),
)
"""First and last opcode, length: all but tableswitch 170, lookupswitch 171 and wide 196."""
FIXED = {opcode: size for first, last, size in LENGTHS for opcode in range(first, last + 1)}


def instruction(constants: Constants, opcode: int) -> bytes:
    """An instruction of an opcode that alone says its length; it jumps to itself, if it jumps."""
    refers = _operand(constants, opcode)
    return bytes([opcode]) + refers + bytes(FIXED[opcode] - 1 - len(refers))


def _operand(constants: Constants, opcode: int) -> bytes:
    if opcode == 18:
        return bytes([constants.string("text")])
    if opcode == 188:
        return bytes([10])
    if opcode == 197:
        return U2(constants.cls("[[I")) + b"\x02"
    index = {
        19: lambda: constants.single(1.5),
        20: lambda: constants.long(1 << 40),
        **dict.fromkeys(range(178, 182), lambda: constants.field("p/B", "x", "[I")),
        **dict.fromkeys((182, 183, 184), lambda: constants.method("p/B", "f", "(IJ)V")),
        185: lambda: constants.interface_method("p/I", "g", "()I"),
        186: lambda: constants.invoke_dynamic("run", "()Ljava/lang/Runnable;"),
        **dict.fromkeys((187, 189, 192, 193), lambda: constants.cls("p/B")),
    }.get(opcode)
    return U2(index()) if index else b""


def switches(at: int) -> bytes:
    """A tableswitch and a lookupswitch with two keys each, that begin at `at`."""
    table = b"\xaa" + bytes(-(at + 1) % 4) + struct.pack(">5i", 0, -1, 0, 1, -at)
    at += len(table)
    return table + b"\xab" + bytes(-(at + 1) % 4) + struct.pack(">6i", 0, 2, -5, 1, 7, -at)


def widened() -> Iterator[tuple[int, bytes]]:
    """Yield each instruction that `wide` may precede, with its opcode."""
    for opcode in (*range(21, 26), *range(54, 59), 169):
        yield opcode, b"\xc4" + bytes([opcode]) + U2(300)
    yield 132, b"\xc4\x84" + struct.pack(">Hh", 300, -1000)


def every_instruction() -> bytes:
    """The class file."""
    c = Constants()
    code = b"".join(instruction(c, opcode) for opcode in FIXED)
    code += switches(len(code)) + b"".join(wide for _, wide in widened()) + RETURN
    handlers = [
        struct.pack(">4H", 0, 9, 5, c.cls("p/E")),
        struct.pack(">4H", 0, len(code), 0, 0),
    ]
    thrown = c.attribute("Exceptions", U2(2) + U2(c.cls("p/E")) + U2(c.cls("p/F")))
    method = c.declare(1, "m", "(I[JLp/B;)V", c.code(code, handlers), thrown)
    field = c.declare(24, "x", "I", c.attribute("ConstantValue", U2(c.integer(5))))
    inner = struct.pack(">4H", c.cls("p/A$I"), c.cls("p/A"), c.text("I"), 10)
    attributes = [
        c.attribute("InnerClasses", U2(1) + inner),
        c.attribute("EnclosingMethod", U2(c.cls("p/Z")) + U2(c.pair("f", "()V"))),
        c.attribute("Unheard", b"\xff\xff\xff"),
    ]
    return class_file(
        c, interfaces=["p/I", "p/J"], fields=[field], methods=[method], attributes=attributes
    )
