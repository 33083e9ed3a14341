"""Invalid class files: each is an error with its place and reason."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from examples.findbugs.classfile import ClassFileError, read
from tests.examples.findbugs.class_files import (
    RETURN,
    U2,
    U4,
    Constants,
    Made,
    class_file,
    modified_utf8,
    one_method,
    table,
)


def with_attribute(name: str, content: bytes) -> bytes:
    """A class with an attribute that refers to constant 2, `p/A`."""
    c = Constants()
    c.cls("p/A")
    return class_file(c, attributes=[c.attribute(name, content)])


def of_code(code: bytes) -> bytes:
    return one_method(Constants(), code)


def of_method(*attributes: tuple[str, bytes], access: int = 1) -> bytes:
    c = Constants()
    made = [c.attribute(name, content) for name, content in attributes]
    return class_file(c, methods=[c.declare(access, "m", "()V", *made)])


def of_field(kind: str, *contents: bytes) -> bytes:
    """A class with a field with constants; constant 1 is the number 7."""
    c = Constants()
    c.integer(7)
    made = [c.attribute("ConstantValue", content) for content in contents]
    return class_file(c, fields=[c.declare(9, "x", kind, *made)])


def declared(name: str, descriptor: str) -> bytes:
    c = Constants()
    return class_file(c, methods=[c.declare(1, name, descriptor)])


def headed(name: str, above: str | None = "p/B", *interfaces: str) -> bytes:
    return class_file(Constants(), name=name, above=above, interfaces=interfaces)


def with_pool(count: int, pool: bytes) -> bytes:
    return b"\xca\xfe\xba\xbe" + U2(0) + U2(52) + U2(count) + pool


def twice(field: bool) -> bytes:
    c = Constants()
    members = [c.declare(1, "m", "I" if field else "()V")] * 2
    return class_file(c, fields=members) if field else class_file(c, methods=members)


CODE = U2(1) + U2(1) + U4(1) + RETURN + U2(0) + U2(0)
BAD: list[Made] = [
    ("empty", lambda: b"", "CAFEBABE"),
    ("magic", lambda: b"PK\x03\x04" + bytes(40), "offset 0: it does not begin"),
    ("version", lambda: class_file(Constants(), version=(44, 9)), "no Java of version 44"),
    ("trailing", lambda: class_file(Constants()) + b"\0", "1 bytes follow the end"),
    ("pool count", lambda: with_pool(65535, bytes([3]) * 5), "before the last of 65534 constants"),
    ("tag 2", lambda: with_pool(3, b"\2" + bytes(50)), "no sort of constant with tag 2"),
    ("tag 13", lambda: with_pool(3, b"\x0d" + bytes(50)), "no sort of constant with tag 13"),
    ("tag 255", lambda: with_pool(3, b"\xff" + bytes(50)), "no sort of constant with tag 255"),
    ("half long", lambda: with_pool(2, b"\5" + bytes(50)), "last constant takes an index more"),
    (
        "text length",
        lambda: with_pool(2, b"\1\xff\xff" + bytes(9)),
        "before the last of 1 constants",
    ),
    ("no this", lambda: with_pool(1, bytes(20)), "no constant 0"),
    ("this is a text", lambda: with_pool(2, b"\1\0\1A" + b"\0\0\0\1" + bytes(20)), "of sort Utf8"),
    ("array", lambda: headed("[I"), "'[I' is an array"),
    ("array above", lambda: headed("p/A", "[I"), "'[I' is an array"),
    ("array as interface", lambda: headed("p/A", "p/B", "[I"), "'[I' is an array"),
    ("name with dot", lambda: headed("p.A"), "'p.A' is no name of a class"),
    ("empty name", lambda: headed(""), "'' is no name of a class"),
    ("slashes", lambda: headed("p//A"), "'p//A' is no name of a class"),
    ("no superclass", lambda: headed("p/A", None), "'p/A' has no superclass"),
    ("interface twice", lambda: headed("p/A", "p/B", "p/I", "p/I"), "lists an interface twice"),
    ("method twice", lambda: twice(field=False), "method 'm()V' is declared twice"),
    ("field twice", lambda: twice(field=True), "field 'm' of type 'I' is declared twice"),
    ("no descriptor", lambda: declared("m", "V"), "'V' is no descriptor of a method"),
    ("open descriptor", lambda: declared("m", "(I"), "'(I' is no descriptor"),
    ("void parameter", lambda: declared("m", "(V)V"), "'(V)V' is no descriptor"),
    ("open class", lambda: declared("m", "(Lp/A)V"), "'(Lp/A)V' is no descriptor"),
    ("after result", lambda: declared("m", "()VV"), "'()VV' is no descriptor"),
    ("256 dimensions", lambda: declared("m", f"({'[' * 256}I)V"), "is no descriptor"),
    ("256 words", lambda: declared("m", f"({'JD' * 64})V"), "more parameters than"),
    ("method name", lambda: declared("<m>", "()V"), "'<m>' is no name of a method"),
    ("field type", lambda: of_field("V"), "'V' is no descriptor of a field"),
    ("two types", lambda: of_field("II"), "'II' is no descriptor of a field"),
    ("constant of an array", lambda: of_field("[I", U2(1)), "has a constant of sort Integer"),
    ("constant of a float", lambda: of_field("F", U2(1)), "type 'F' has a constant of sort Int"),
    ("no constant", lambda: of_field("I", U2(99)), "no constant 99"),
    ("long ConstantValue", lambda: of_field("I", bytes([0, 1, 0])), "claims 3 bytes and has 2"),
    ("short ConstantValue", lambda: of_field("I", b"\0"), "no constant 0"),
    ("two ConstantValue", lambda: of_field("I", U2(1), U2(1)), "two attributes ConstantValue"),
    ("two Code", lambda: of_method(("Code", CODE), ("Code", CODE)), "two attributes Code"),
    ("abstract Code", lambda: of_method(("Code", CODE), access=0x401), "native or abstract"),
    ("native Code", lambda: of_method(("Code", CODE), access=0x101), "native or abstract"),
    ("long Code", lambda: of_method(("Code", CODE + b"\0")), "claims 14 bytes and has 13"),
    ("short Code", lambda: of_method(("Code", CODE[:-1])), "claims 12 bytes and has 13"),
    ("empty Code", lambda: of_method(("Code", b"")), "8 bytes are needed, 2 are left"),
    ("no code", lambda: of_code(b""), "'m()V' has 0 bytes"),
    ("too much code", lambda: of_code(bytes(65536)), "'m()V' has 65536 bytes"),
    (
        "code length",
        lambda: of_method(("Code", bytes(4) + U4(2**32 - 1) + bytes(9))),
        "'m()V' has 4294967295 bytes",
    ),
    ("handlers", lambda: of_method(("Code", CODE[:9] + U2(65535))), "the file ends"),
    ("attributes of code", lambda: of_method(("Code", CODE[:-2] + U2(65535))), "the file ends"),
    ("Exceptions", lambda: of_method(("Exceptions", U2(65535))), "131070 bytes are needed"),
    ("long Exceptions", lambda: of_method(("Exceptions", bytes(3))), "claims 3 bytes and has 2"),
    ("InnerClasses", lambda: with_attribute("InnerClasses", U2(65535)), "the file ends"),
    ("no inner", lambda: with_attribute("InnerClasses", U2(1) + bytes(8)), "no constant 0"),
    ("long Inner", lambda: with_attribute("InnerClasses", bytes(4)), "claims 4 bytes and has 2"),
    ("Enclosing", lambda: with_attribute("EnclosingMethod", U2(2)), "the file ends"),
    ("enclosing text", lambda: with_attribute("EnclosingMethod", U2(1) * 2), "sort Utf8"),
    ("attribute length", lambda: class_file(Constants())[:-2] + U2(1) + U2(1) + U4(2**31), "ends"),
]


@pytest.mark.parametrize(("made", "message"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_what_is_wrong_is_said(made: Callable[[], bytes], message: str) -> None:
    with pytest.raises(ClassFileError, match=r"^p/A.class: offset \d+: ") as caught:
        read(made(), "p/A.class")
    assert message in str(caught.value)


def test_long_texts_are_cut_in_a_message() -> None:
    with pytest.raises(ClassFileError) as caught:
        read(headed("\n;" * 9999), "A.class")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_an_error_survives_pickling() -> None:
    error = ClassFileError("A.class", 7, "wrong")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.file, copy.offset, str(copy)) == ("A.class", 7, "A.class: offset 7: wrong")


def test_long_names_with_many_descriptors_are_refused() -> None:
    c = Constants()
    name = U2(c.raw(modified_utf8("m" * 60_000)))
    methods = [U2(1) + name + U2(c.text(f"(Lp{n};)V")) + table([]) for n in range(2000)]
    with pytest.raises(ClassFileError, match="names of its methods are too long"):
        read(class_file(c, methods=methods), "A.class")
