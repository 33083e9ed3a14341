"""The reader of class files, on files made by hand: each fact matches the bytes."""

from __future__ import annotations

import math
import struct
from operator import itemgetter

import pytest

from examples.findbugs import facts as f
from examples.findbugs.classfile import read
from examples.findbugs.facts import KINDS, Fact
from tests.examples.findbugs.class_files import (
    RETURN,
    U2,
    U4,
    Constants,
    class_file,
    one_method,
    rows,
    table,
)
from tests.examples.findbugs.every_instruction import (
    FIXED,
    every_instruction,
    instruction,
    switches,
    widened,
)

PLACE = ("p/A", "m()V")
PC = itemgetter(2)
OBJECT = "java/lang/Object"


def instructions(constants: Constants, code: bytes) -> list[Fact]:
    """The facts of the code of a method in their order, without that of a return at its end."""
    found = read(one_method(constants, code + RETURN), "A.class", f.INSTRUCTIONS)
    last = f.Basic(*PLACE, len(code), 177, len(code) + 1)
    assert found[f.Basic][-1] == last
    return sorted([row for kind in found.values() for row in kind if row != last], key=PC)


@pytest.mark.parametrize("opcode", FIXED)
def test_an_instruction_ends_where_the_next_begins(opcode: int) -> None:
    constants = Constants()
    code = instruction(constants, opcode)
    (row,) = instructions(constants, code)
    assert row[:5] == (*PLACE, 0, opcode, FIXED[opcode])


@pytest.mark.parametrize(("opcode", "wide"), [*widened()])
def test_wide_stands_with_the_instruction_that_it_widens(opcode: int, wide: bytes) -> None:
    (row,) = instructions(Constants(), wide)
    operands = (300, -1000) if opcode == 132 else (300,)
    assert row == (*PLACE, 0, opcode, len(wide), *operands)


@pytest.mark.parametrize("at", range(8))
def test_switches_begin_at_the_next_multiple_of_four(at: int) -> None:
    code = bytes(at) + switches(at)
    found = instructions(Constants(), code)
    second = (at // 4 + 1) * 4 + 20
    assert [row for row in found if type(row) is not f.Basic] == [
        f.TableSwitch(*PLACE, at, 170, second, at, -1, (at + 1, 0)),
        f.LookupSwitch(*PLACE, second, 171, len(code), second, (-5, 7), (second + 1, 0)),
    ]


def test_a_switch_without_keys_has_its_default() -> None:
    code = b"\xab" + bytes(3) + struct.pack(">2i", 12, 0)
    assert instructions(Constants(), code) == [f.LookupSwitch(*PLACE, 0, 171, 12, 12, (), ())]


def test_jumps_are_relative_to_their_instruction() -> None:
    code = b"\x00\xa7\xff\xff" + b"\xc8" + struct.pack(">i", 5) + b"\x99\xff\xfb"
    assert instructions(Constants(), code) == [
        f.Basic(*PLACE, 0, 0, 1),
        f.Goto(*PLACE, 1, 167, 4, 0),
        f.Goto(*PLACE, 4, 200, 9, 9),
        f.CondJump(*PLACE, 9, 153, 12, 4),
    ]


def test_calls_name_a_class_an_array_or_none() -> None:
    c = Constants()
    refs = [
        (182, c.method("[I", "clone", "()Ljava/lang/Object;"), ("[I", "clone", (), f"L{OBJECT};")),
        (183, c.interface_method("p/I", "f", "(J[[D)V"), ("p/I", "f", ("J", "[[D"), "V")),
        (184, c.method("p/A", "<init>", "(I)V"), ("p/A", "<init>", ("I",), "V")),
    ]
    code = b"".join(bytes([opcode]) + U2(index) for opcode, index, _ in refs)
    code += b"\xba" + U2(c.invoke_dynamic("run", "(Lp/A;)[I")) + bytes(2)
    found = instructions(c, code)
    assert found == [
        *[(*PLACE, 3 * n, o, 3 * n + 3, *said) for n, (o, _, said) in enumerate(refs)],
        (*PLACE, 9, 186, 14, None, "run", ("Lp/A;",), "[I"),
    ]
    assert {type(row) for row in found} == {f.Invoke}


def test_arrays_are_of_primitives_classes_and_arrays() -> None:
    c = Constants()
    primitives = b"".join(bytes([188, 4 + n]) for n in range(8))
    code = primitives + b"\xbd" + U2(c.cls("[J")) + b"\xc5" + U2(c.cls("[[[I")) + b"\x02"
    assert instructions(c, code) == [
        *[f.NewArray(*PLACE, 2 * n, 188, 2 * n + 2, kind, 1) for n, kind in enumerate("ZCFDBSIJ")],
        f.NewArray(*PLACE, 16, 189, 19, "[J", 1),
        f.NewArray(*PLACE, 19, 197, 23, "[[[I", 2),
    ]


def test_constants_that_opcodes_imply() -> None:
    found = instructions(Constants(), bytes(range(1, 16)))
    implied = [(row.type, row.value) for row in found if isinstance(row, f.ConstInsn)]
    ints = [("I", n) for n in range(-1, 6)]
    floats = [("F", 0.0), ("F", 1.0), ("F", 2.0), ("D", 0.0), ("D", 1.0)]
    assert implied == [(None, None), *ints, ("J", 0), ("J", 1), *floats]
    assert [type(value) for _, value in implied[10:]] == [float] * 5


def test_locals_that_opcodes_imply() -> None:
    found = instructions(Constants(), bytes([*range(26, 46), *range(59, 79)]))
    assert [row[-1] for row in found] == list(range(4)) * 10


def test_numbers_in_code_have_signs() -> None:
    found = instructions(Constants(), b"\x10\x80\x11\xff\x7f\x84\xff\xff")
    assert [row[5:] for row in found] == [("I", -128), ("I", -129), (255, -1)]


def test_constants_that_can_be_pushed() -> None:
    c = Constants()
    loaded = {
        c.integer(-7): ("I", -7),
        c.single(math.inf): ("F", math.inf),
        c.string("text"): ("Ljava/lang/String;", "text"),
        c.cls("[Lp/A;"): ("Ljava/lang/Class;", "[Lp/A;"),
        c.method_type("(I)V"): ("Ljava/lang/invoke/MethodType;", "(I)V"),
        c.handle(6, c.method("p/A", "f", "()V")): (
            "Ljava/lang/invoke/MethodHandle;",
            "p/A.f()V",
        ),
        c.handle(1, c.field("p/A", "x", "I")): ("Ljava/lang/invoke/MethodHandle;", "p/A.xI"),
        c.dynamic("x", "Lp/A;"): ("Lp/A;", "x"),
    }
    wide = {
        c.long(-1 << 63): ("J", -1 << 63),
        c.double(-0.5): ("D", -0.5),
        c.dynamic("y", "J"): ("J", "y"),
    }
    code = b"".join(b"\x12" + bytes([index]) + b"\x13" + U2(index) for index in loaded)
    code += b"".join(b"\x14" + U2(index) for index in wide)
    pushed = [row[5:] for row in instructions(c, code)]
    assert pushed == [said for said in loaded.values() for _ in range(2)] + list(wide.values())


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF])
def test_all_that_are_not_numbers_are_one_object(bits: int) -> None:
    c = Constants()
    (row,) = instructions(c, b"\x12" + bytes([c.add(4, U4(bits))]))
    assert row[-1] is math.nan


def test_constants_of_fields_follow_their_type() -> None:
    c = Constants()
    values: dict[str, tuple[int, f.Constant]] = {
        **{kind: (c.integer(n), n) for n, kind in enumerate("ZBSCI", 1)},
        "J": (c.long(1 << 40), 1 << 40),
        "F": (c.single(0.5), 0.5),
        "D": (c.double(math.pi), math.pi),
        "Ljava/lang/String;": (c.string(""), ""),
    }
    fields = [
        c.declare(9, "x", kind, c.attribute("ConstantValue", U2(index)))
        for kind, (index, _) in values.items()
    ]
    found = read(class_file(c, fields=[*fields, c.declare(2, "y", "[I")]), "A.class")
    expected = [f.FieldDecl("p/A", 9, "x", kind, value) for kind, (_, value) in values.items()]
    assert found[f.FieldDecl] == [*expected, f.FieldDecl("p/A", 2, "y", "[I", None)]


@pytest.mark.parametrize(
    "text", ["", "caf\u00e9 \u0000 \u20ac", "\U0001f600", "\ud83d", "\ude00\ud83d", "x\ude00" * 2]
)
def test_texts_are_in_modified_utf8(text: str) -> None:
    c = Constants()
    (row,) = instructions(c, b"\x12" + bytes([c.string(text)]))
    assert row[-1] == text


def test_the_header_is_a_fact() -> None:
    data = class_file(Constants(), access=0x31, interfaces=["p/I", "p/J"])
    declared = f.ClassDecl("p/A", 52, 0x31, OBJECT, ("p/I", "p/J"))
    assert read(data, "A.class") == {f.ClassDecl: [declared]}


@pytest.mark.parametrize("version", [(45, 0), (45, 3), (52, 0), (69, 65535), (99, 0)])
def test_files_of_all_versions_are_read(version: tuple[int, int]) -> None:
    c = Constants()
    method = c.declare(9, "m", "()V", c.code(RETURN))
    found = read(class_file(c, version=version, methods=[method]), "A.class")
    assert rows(found, f.ClassDecl)[0].major == version[0]
    assert found[f.Code] == [f.Code(*PLACE, 1, 7, 8)]


def test_code_before_45_3_may_have_short_numbers() -> None:
    c = Constants()
    content = bytes([1, 2]) + U2(1) + RETURN + table([struct.pack(">4H", 0, 1, 0, 0)]) + U2(0)
    method = c.declare(9, "m", "()V", c.attribute("Code", content))
    found = read(class_file(c, version=(45, 2), methods=[method]), "A.class")
    assert found[f.Code] == [f.Code(*PLACE, 1, 1, 2)]
    assert found[f.Basic] == [f.Basic(*PLACE, 0, 177, 1)]
    assert found[f.Handler] == [f.Handler(*PLACE, 0, 1, 0, None)]


def test_only_object_and_modules_have_no_superclass() -> None:
    c = Constants()
    c.add(19, U2(c.text("m")))
    c.add(20, U2(c.text("p")))
    module = class_file(c, version=(53, 0), access=0x8000, name="module-info", above=None)
    root = class_file(Constants(), name=OBJECT, above=None)
    assert read(module, "m")[f.ClassDecl] == [f.ClassDecl("module-info", 53, 0x8000, None, ())]
    assert read(root, "o")[f.ClassDecl] == [f.ClassDecl(OBJECT, 52, 0x21, None, ())]


def test_every_kind_of_fact_is_found() -> None:
    found = read(every_instruction(), "A.class")
    assert set(found) == set(KINDS)
    assert [row.catch_type for row in rows(found, f.Handler)] == ["p/E", None]
    assert found[f.InnerClass] == [f.InnerClass("p/A", "p/A$I", "p/A", "I", 10)]
    assert found[f.EnclosingMethod] == [f.EnclosingMethod("p/A", "p/Z", "f()V")]
    assert [row.exception for row in rows(found, f.Throws)] == ["p/E", "p/F"]


def test_kinds_stand_in_the_order_in_which_they_are_defined() -> None:
    assert tuple(read(every_instruction(), "A.class", KINDS[::-1])) == KINDS


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_kind_alone_has_the_same_facts_as_with_all_others(kind: type[Fact]) -> None:
    data = every_instruction()
    everything = read(data, "A.class")
    others = set(KINDS) - {kind}
    assert read(data, "A.class", [kind]) == {kind: everything[kind]}
    assert read(data, "A.class", others) == {other: everything[other] for other in others}


def test_what_no_wanted_fact_needs_is_not_looked_at() -> None:
    c = Constants()
    broken = one_method(c, b"\xb6" + U2(999) + b"\xca", [bytes(8)])
    assert set(read(broken, "A.class", [f.ClassDecl, f.MethodDecl, f.Throws])) == {
        f.ClassDecl,
        f.MethodDecl,
    }
    unread = one_method(Constants(), b"\xb6" + U2(999) + RETURN)
    assert read(unread, "A.class", [f.Basic]) == {f.Basic: [f.Basic(*PLACE, 3, 177, 4)]}


def test_a_fact_stated_twice_is_one_fact() -> None:
    c = Constants()
    handler = struct.pack(">4H", 0, 1, 0, c.cls("p/E"))
    thrown = c.attribute("Exceptions", table([U2(c.cls("p/E"))] * 2))
    method = c.declare(9, "m", "()V", c.code(RETURN, [handler, handler]), thrown)
    inner = struct.pack(">4H", c.cls("p/A$1"), 0, 0, 8)
    data = class_file(
        c, methods=[method], attributes=[c.attribute("InnerClasses", table([inner, inner]))]
    )
    found = read(data, "A.class")
    assert found[f.Handler] == [f.Handler(*PLACE, 0, 1, 0, "p/E")]
    assert found[f.Throws] == [f.Throws(*PLACE, "p/E")]
    assert found[f.InnerClass] == [f.InnerClass("p/A", "p/A$1", None, None, 8)]


def test_equal_texts_and_parameters_of_a_file_are_one_object() -> None:
    c = Constants()
    calls = [c.method("p/B", "f", "(I[J)V"), c.method("p/B", "f", "(I[J)I")]
    code = b"".join(b"\xb8" + U2(index) for index in calls * 2)
    data = one_method(c, code + RETURN)
    first, second, again, _ = rows(read(data, "A.class"), f.Invoke)
    for column in ("cls", "method", "receiver", "name"):
        assert getattr(first, column) is getattr(second, column)
    assert first.params is second.params
    assert first.ret is again.ret


def test_equal_names_of_two_files_are_one_object() -> None:
    first, second = (
        rows(read(class_file(Constants(), access=access), "A.class"), f.ClassDecl)[0]
        for access in (0x21, 0x31)
    )
    assert first.name is second.name
    assert first.super is second.super
