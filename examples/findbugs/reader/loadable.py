"""Constants that an instruction can push, and constants of fields.

Source: the Java Virtual Machine Specification, table 4.4-C and section 4.7.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from struct import Struct
from types import MappingProxyType

from examples.findbugs.facts import Constant
from examples.findbugs.reader import constant_pool as pools
from examples.findbugs.reader.constant_pool import ConstantPool
from examples.findbugs.reader.cursor import U2, Malformed, shown

STRING = "Ljava/lang/String;"
CLASS = "Ljava/lang/Class;"
METHOD_TYPE = "Ljava/lang/invoke/MethodType;"
METHOD_HANDLE = "Ljava/lang/invoke/MethodHandle;"

NUMBERS: Mapping[int, tuple[str, Struct]] = MappingProxyType(
    {
        pools.INTEGER: ("I", Struct(">i")),
        pools.FLOAT: ("F", Struct(">f")),
        pools.LONG: ("J", Struct(">q")),
        pools.DOUBLE: ("D", Struct(">d")),
    }
)
FIELDS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys("ZBSCI", pools.INTEGER),
        "J": pools.LONG,
        "F": pools.FLOAT,
        "D": pools.DOUBLE,
        STRING: pools.STRING,
    }
)
"""The tag of the constant of a field, by the field's type."""
HANDLE = Struct(">BH")
METHODS = (pools.METHOD, pools.INTERFACE_METHOD)
HANDLES: tuple[tuple[int, ...], ...] = (
    *[(pools.FIELD,)] * 4,
    (pools.METHOD,),
    METHODS,
    METHODS,
    (pools.METHOD,),
    (pools.INTERFACE_METHOD,),
)
"""The tags of the targets of method handles, by their kind from 1 on."""


def field_constant(pool: ConstantPool, index: int, field_type: str) -> Constant:
    """Return the value of the constant at an index, that of a field of the given type."""
    tag = pool.tag(index)
    if FIELDS.get(field_type) != tag:
        kind = shown(field_type)
        raise Malformed(f"a field of type {kind} has a constant of sort {pools.TAGS[tag]}")
    return loadable(pool, index)[1]


def loadable(pool: ConstantPool, index: int) -> tuple[str, Constant]:
    """Return the type and the value of a constant that can be pushed."""
    match pool.tag(index):
        case pools.STRING:
            return STRING, pool.text(*pool.parts(index, U2, pools.STRING))
        case pools.CLASS:
            return CLASS, pool.class_name(index)
        case pools.INTEGER | pools.FLOAT | pools.LONG | pools.DOUBLE as tag:
            return _number(pool, index, tag)
        case pools.METHOD_TYPE:
            (descriptor,) = pool.parts(index, U2, pools.METHOD_TYPE)
            pool.signature(descriptor)
            return METHOD_TYPE, pool.text(descriptor)
        case pools.METHOD_HANDLE:
            return METHOD_HANDLE, _handle(pool, index)
        case pools.DYNAMIC:
            _, pair = pool.parts(index, pools.PAIR, pools.DYNAMIC)
            name, kind = pool.name_and_type(pair)
            return pool.field_type(kind), pool.field_name(name)
        case tag:
            raise Malformed(f"constant {index} is of sort {pools.TAGS[tag]}, which has no value")


def _number(pool: ConstantPool, index: int, tag: int) -> tuple[str, Constant]:
    kind, shape = NUMBERS[tag]
    (value,) = pool.parts(index, shape, tag)
    return kind, value if value == value else math.nan


def _handle(pool: ConstantPool, index: int) -> str:
    """Return the class, name and descriptor of the target of a method handle, as one text."""
    kind, member = pool.parts(index, HANDLE, pools.METHOD_HANDLE)
    if not 1 <= kind <= len(HANDLES):
        raise Malformed(f"constant {index} is a method handle of the unknown kind {kind}")
    owner, pair = pool.parts(member, pools.PAIR, *HANDLES[kind - 1])
    name, descriptor = pool.name_and_type(pair)
    if pool.tag(member) == pools.FIELD:
        key = pool.join(pool.field_name(name), pool.field_type(descriptor))
    else:
        key = pool.method_key(name, descriptor)
    return pool.join(pool.class_name(owner), ".", key)
