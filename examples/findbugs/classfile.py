"""Read a Java class file as facts.

    bytes -> cursor -> header, fields, methods, attributes -> facts
                          |                 |
                    constant pool      instructions

All major versions from 45, Java 1.0, on are read. Attributes that state none of the facts are
skipped. What the Java virtual machine would refuse, as far as a fact depends on it, is an error;
that code fits together, its verifier's concern, is not looked at.

Source: the Java Virtual Machine Specification, chapter 4.
"""

from __future__ import annotations

from collections.abc import Collection
from struct import Struct

from examples.findbugs.facts import (
    INSTRUCTIONS,
    KINDS,
    ClassDecl,
    EnclosingMethod,
    Fact,
    Facts,
    InnerClass,
)
from examples.findbugs.reader.attributes import Reading, attributes
from examples.findbugs.reader.constant_pool import ConstantPool, constant_pool
from examples.findbugs.reader.cursor import Cursor, Malformed, shown
from examples.findbugs.reader.instructions import forms
from examples.findbugs.reader.members import fields, methods

MAGIC = bytes.fromhex("CAFEBABE")
OLDEST = 45
MODULE = 0x8000
ROOT = "java/lang/Object"

BEGINNING = Struct(">IHH")
HEADER = Struct(">HHH")
INNER_CLASS = Struct(">HHHH")
ENCLOSING_METHOD = Struct(">HH")


class ClassFileError(ValueError):
    """Bytes that are not a class file: the file, the offset in it, and the reason.

    The offset is that of the wrong instruction, or the end of the bytes that were read.
    """

    def __init__(self, file: str, offset: int, problem: str) -> None:
        super().__init__(file, offset, problem)
        self.file = file
        self.offset = offset
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.file}: offset {self.offset}: {self.problem}"


def read(data: bytes, file: str, kinds: Collection[type[Fact]] = KINDS) -> Facts:
    """Return the facts of some kinds that a class file states.

    Parameters
    ----------
    data : bytes
        The class file.
    file : str
        What to call it in an error.
    kinds : collection of classes of facts
        Those asked for. The fewer, the quicker: what no such fact needs is skipped, unchecked.

    Returns
    -------
    dict, class of facts -> list of facts
        Each fact once, in the order of the file; kinds without facts are absent.

    Raises
    ------
    ClassFileError
        If it is no class file, is cut off, or contradicts itself.

    Takes time and memory in proportion to the length of the file, whatever lengths it claims.
    """
    cursor = Cursor(data)
    try:
        return _class_file(cursor, frozenset(kinds))
    except Malformed as error:
        raise ClassFileError(file, cursor.at, str(error)) from None


def _class_file(cursor: Cursor, kinds: frozenset[type[Fact]]) -> Facts:
    version = _version(cursor)
    pool = constant_pool(cursor)
    header = _header(cursor, version[0], pool)
    facts: dict[type[Fact], list[Fact]] = {kind: [] for kind in KINDS if kind in kinds}
    table = None if kinds.isdisjoint(INSTRUCTIONS) else forms(kinds)
    reading = Reading(cursor, version, pool, header.name, kinds, table, facts)
    if ClassDecl in kinds:
        facts[ClassDecl].append(header)
    fields(reading)
    methods(reading)
    _class_attributes(reading)
    if cursor.at != len(cursor.data):
        raise Malformed(f"{len(cursor.data) - cursor.at} bytes follow the end of the class")
    return {kind: rows for kind, rows in facts.items() if rows}


def _version(cursor: Cursor) -> tuple[int, int]:
    if not cursor.data.startswith(MAGIC):
        raise Malformed("it does not begin as a class file does, with CAFEBABE")
    _, minor, major = cursor.take(BEGINNING)
    if major < OLDEST:
        raise Malformed(f"there is no Java of version {major}")
    return major, minor


def _header(cursor: Cursor, major: int, pool: ConstantPool) -> ClassDecl:
    access, this_class, super_class = cursor.take(HEADER)
    name = _no_array(pool.class_name(this_class))
    if not super_class and name != ROOT and not access & MODULE:
        raise Malformed(f"class {shown(name)} has no superclass")
    above = _no_array(pool.class_name(super_class)) if super_class else None
    indices = cursor.indices(cursor.u2())
    interfaces = tuple([_no_array(pool.class_name(index)) for index in indices])
    if len(set(interfaces)) != len(interfaces):
        raise Malformed(f"class {shown(name)} lists an interface twice")
    return ClassDecl(name, major, access, above, interfaces)


def _no_array(name: str) -> str:
    if name.startswith("["):
        raise Malformed(f"{shown(name)} is an array, a class is needed")
    return name


def _class_attributes(reading: Reading) -> None:
    for attribute, _ in attributes(reading):
        if attribute == "InnerClasses" and InnerClass in reading.kinds:
            _inner_classes(reading)
        elif attribute == "EnclosingMethod" and EnclosingMethod in reading.kinds:
            _enclosing_method(reading)


def _inner_classes(reading: Reading) -> None:
    cursor, pool = reading.cursor, reading.pool
    rows: dict[InnerClass, None] = {}
    for _ in range(cursor.u2()):
        inner, outer, name, access = cursor.take(INNER_CLASS)
        inner_name = pool.text(name) if name else None
        owner = pool.class_name(outer) if outer else None
        rows[InnerClass(reading.name, pool.class_name(inner), owner, inner_name, access)] = None
    reading.facts[InnerClass].extend(rows)


def _enclosing_method(reading: Reading) -> None:
    outer, method = reading.cursor.take(ENCLOSING_METHOD)
    pool = reading.pool
    key = pool.method_key(*pool.name_and_type(method)) if method else None
    row = EnclosingMethod(reading.name, pool.class_name(outer), key)
    reading.facts[EnclosingMethod].append(row)
