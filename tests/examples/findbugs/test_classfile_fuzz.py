"""Class files cut off and overwritten at random: facts or an error, in bounded time and space."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from examples.findbugs import facts as f
from examples.findbugs.classfile import ClassFileError, read
from examples.findbugs.reader import descriptors
from tests.budget import seeds
from tests.counted_calls import calls_of
from tests.examples.findbugs.class_files import (
    RETURN,
    U2,
    U4,
    Constants,
    class_file,
    one_method,
    table,
)
from tests.examples.findbugs.every_instruction import every_instruction

INTERESTING = (0, 1, 2, 3, 4, 7, 0x7F, 0x80, 0xC4, 0xFF)
BYTES_PER_BYTE = 250
"""An instruction of one byte is a row of five columns, with a number of its own."""
CALLS_PER_BYTE = 10


def several_members() -> bytes:
    """A class file with fields, constants, overloads, handlers and calls."""
    c = Constants()
    call = b"\xb8" + U2(c.method("p/A", "g", "(I)V")) + b"\x12" + bytes([c.string("caf\u00e9")])
    handlers = [struct.pack(">4H", 0, 4, 5, c.cls("p/E"))]
    lines = c.attribute("LineNumberTable", U2(1) + U2(0) + U2(12))
    fields = [
        c.declare(9, "x", "J", c.attribute("ConstantValue", U2(c.long(5)))),
        c.declare(9, "x", "Ljava/lang/String;", c.attribute("ConstantValue", U2(c.string("")))),
    ]
    methods = [
        c.declare(1, "g", "(I)V", c.code(call + RETURN, handlers, lines)),
        c.declare(1, "g", "([[J)V", c.code(b"\x00" * 7 + RETURN)),
        c.declare(0x401, "h", "()I", c.attribute("Exceptions", table([U2(c.cls("p/E"))]))),
    ]
    return class_file(c, interfaces=["p/I"], fields=fields, methods=methods)


def module() -> bytes:
    c = Constants()
    content = U2(c.add(19, U2(c.text("m")))) + bytes(14)
    return class_file(
        c,
        version=(53, 0),
        access=0x8000,
        name="module-info",
        above=None,
        attributes=[c.attribute("Module", content)],
    )


FILES = {"every": every_instruction(), "several": several_members(), "module": module()}


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_off_anywhere_is_an_error(name: str) -> None:
    data = FILES[name]
    read(data, "A.class")
    for length in range(len(data)):
        with pytest.raises(ClassFileError):
            read(data[:length], "A.class")


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_gives_facts_or_an_error(name: str) -> None:
    outcomes = {facts_or_error(changed) for changed in with_changed_bytes(FILES[name])}
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", FILES)
def test_random_changes_give_facts_or_an_error(name: str) -> None:
    source = random.Random(name)
    outcomes = {facts_or_error(overwritten(FILES[name], source)) for _ in seeds(3000)}
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", FILES)
def test_changes_take_neither_much_memory_nor_many_calls(name: str) -> None:
    source = random.Random(name)
    for _ in seeds(300, share=60):
        data = overwritten(FILES[name], source)
        most = BYTES_PER_BYTE * len(data) + 100_000
        if peak(data) > most:  # once, where the interpreter's table of names grows just then
            assert peak(data) <= most
        assert calls(data) <= CALLS_PER_BYTE * len(data) + 1000


HUGE = {
    "nops": lambda: one_method(Constants(), bytes(65535)),
    "tableswitch": lambda: one_method(
        Constants(), b"\xaa" + bytes(3) + struct.pack(">3i", 0, 0, 2**31 - 2)
    ),
    "lookupswitch": lambda: one_method(
        Constants(), b"\xab" + bytes(3) + struct.pack(">2i", 0, 2**31 - 1)
    ),
    "code length": lambda: one_method(Constants(), RETURN).replace(
        U4(1) + RETURN, U4(2**32 - 1) + RETURN
    ),
    "pool": lambda: b"\xca\xfe\xba\xbe" + U2(0) + U2(52) + U2(65535) + bytes([1, 0, 0]),
    "attribute": lambda: class_file(Constants())[:-2] + U2(1) + U2(1) + U4(2**32 - 1),
    "interfaces": lambda: class_file(Constants())[:-8] + U2(65535),
    "methods": lambda: class_file(Constants())[:-4] + U2(65535),
    "long key": lambda: long_keys(),
    "long texts": lambda: long_texts(),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_great_claim_takes_neither_much_memory_nor_many_calls(name: str) -> None:
    data = HUGE[name]()
    assert peak(data) <= BYTES_PER_BYTE * len(data) + 100_000
    assert calls(data) <= CALLS_PER_BYTE * len(data) + 1000


@pytest.mark.parametrize("check", ["class_name", "field_name", "field_type", "method_name"])
def test_a_long_text_of_many_constants_is_checked_once(
    check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    original = getattr(descriptors, check)

    def counting(text: str) -> str:
        checked.append(text)
        return str(original(text))

    monkeypatch.setattr(descriptors, check, counting)
    read(long_texts(), "A.class")
    assert len(checked) == len(set(checked)) > 0


def long_keys() -> bytes:
    """A long name with each of many descriptors: their keys would take a hundred megabytes."""
    c = Constants()
    name = U2(c.text("m" * 60_000))
    methods = [U2(1) + name + U2(c.text(f"(Lp{n};)V")) + table([]) for n in range(2000)]
    return class_file(c, methods=methods)


def long_texts() -> bytes:
    """A long name, of a class, a field and a method, and a long type, for many constants each."""
    c = Constants()
    name = U2(c.text("n" * 60_000))
    owner = U2(c.cls("p/A"))
    field = U2(c.add(12, name + U2(c.text(f"L{'q' * 60_000};"))))
    method = U2(c.add(12, name + U2(c.text("()V"))))
    sorts = {
        b"\x13": b"\x07" + name,
        b"\xb2": b"\x09" + owner + field,
        b"\xb8": b"\x0a" + owner + method,
    }
    code = b""
    for opcode, entry in sorts.items():
        code += b"".join(opcode + U2(c.count + n) for n in range(1000))
        c.entries.extend([entry] * 1000)
        c.count += 1000
    return one_method(c, code + RETURN)


def facts_or_error(data: bytes) -> bool:
    """Return True if bytes are a class file, after a check that its facts are plain."""
    try:
        found = read(data, "A.class")
    except ClassFileError as error:
        assert 0 <= error.offset <= len(data)
        return False
    for kind, rows in found.items():
        assert len(set(rows)) == len(rows) > 0
        assert {type(row) for row in rows} == {kind}
        assert {len(row) for row in rows} == {len(kind._fields)}
    assert len(found[f.ClassDecl]) == 1
    return True


def with_changed_bytes(data: bytes) -> Iterator[bytes]:
    """The file with each of its bytes changed to some others."""
    for at, old in enumerate(data):
        for new in {*INTERESTING, old ^ 1, (old + 1) & 0xFF}:
            yield data[:at] + bytes([new]) + data[at + 1 :]


def overwritten(data: bytes, source: random.Random) -> bytes:
    """The file with one to three numbers of one, two or four bytes overwritten."""
    changed = bytearray(data)
    for _ in range(source.randint(1, 3)):
        size = source.choice((1, 2, 4))
        at = source.randrange(len(data) - size)
        value = source.choice((source.randbytes(size), bytes(size), b"\xff" * size, b"\0\0\0\1"))
        changed[at : at + size] = value[-size:]
    return bytes(changed)


def peak(data: bytes) -> int:
    """Return the peak of memory, in bytes, during reading."""
    tracemalloc.start()
    try:
        read(data, "A.class")
    except ClassFileError:
        pass
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most


def calls(data: bytes) -> int:
    """Return the number of functions that reading calls, of Python and of C."""

    def attempt() -> None:
        with suppress(ClassFileError):
            read(data, "A.class")

    return calls_of(attempt)
