"""The fields and methods of a class, as facts.

Source: the Java Virtual Machine Specification, sections 4.5, 4.6, 4.7.2 and 4.7.5.
"""

from __future__ import annotations

from struct import Struct

from examples.findbugs.facts import (
    INSTRUCTIONS,
    Code,
    Constant,
    FieldDecl,
    Handler,
    MethodDecl,
    Throws,
)
from examples.findbugs.reader.attributes import Reading, attributes, skip_attributes
from examples.findbugs.reader.cursor import Malformed, shown
from examples.findbugs.reader.loadable import field_constant
from examples.findbugs.reader.method_code import method_code

MEMBER = Struct(">HHH")
NATIVE_OR_ABSTRACT = 0x500

IN_CODE = frozenset({Code, Handler, *INSTRUCTIONS})
IN_METHODS = IN_CODE | {MethodDecl, Throws}


def fields(reading: Reading) -> None:
    """Read the fields at the cursor."""
    cursor, pool = reading.cursor, reading.pool
    wanted = FieldDecl in reading.kinds
    seen = set()
    for _ in range(cursor.u2()):
        access, name, kind = cursor.take(MEMBER)
        if not wanted:
            skip_attributes(cursor)
            continue
        key = pool.field_name(name), pool.field_type(kind)
        if key in seen:
            raise Malformed(f"field {shown(key[0])} of type {shown(key[1])} is declared twice")
        seen.add(key)
        value = _constant_value(reading, key[1])
        reading.facts[FieldDecl].append(FieldDecl(reading.name, access, *key, value))


def _constant_value(reading: Reading, field_type: str) -> Constant:
    value = None
    for attribute, _ in attributes(reading):
        if attribute == "ConstantValue":
            value = field_constant(reading.pool, reading.cursor.u2(), field_type)
    return value


def methods(reading: Reading) -> None:
    """Read the methods at the cursor."""
    cursor, pool = reading.cursor, reading.pool
    wanted = not reading.kinds.isdisjoint(IN_METHODS)
    seen = set()
    for _ in range(cursor.u2()):
        access, name, descriptor = cursor.take(MEMBER)
        if not wanted:
            skip_attributes(cursor)
            continue
        key = pool.method_key(name, descriptor)
        if key in seen:
            raise Malformed(f"method {shown(key)} is declared twice")
        seen.add(key)
        if MethodDecl in reading.kinds:
            params, ret = pool.signature(descriptor)
            row = MethodDecl(reading.name, key, access, pool.text(name), params, ret)
            reading.facts[MethodDecl].append(row)
        _method_attributes(reading, key, access)


def _method_attributes(reading: Reading, method: str, access: int) -> None:
    in_code = not reading.kinds.isdisjoint(IN_CODE)
    throws = Throws in reading.kinds
    for attribute, end in attributes(reading):
        if attribute == "Code" and in_code:
            if access & NATIVE_OR_ABSTRACT:
                raise Malformed(f"method {shown(method)} is native or abstract and has code")
            method_code(reading, method, end)
        elif attribute == "Exceptions" and throws:
            _exceptions(reading, method)


def _exceptions(reading: Reading, method: str) -> None:
    cursor = reading.cursor
    names = dict.fromkeys(map(reading.pool.class_name, cursor.indices(cursor.u2())))
    reading.facts[Throws].extend([Throws(reading.name, method, name) for name in names])
