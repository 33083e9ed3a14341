"""The operands of an instruction: the columns of its fact from the sixth on.

A `Columns` is a function of a method's code, of a place in it, and of the constant pool. All bytes
of the instruction are known to be in the code.

Source: the Java Virtual Machine Specification, section 6.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from types import MappingProxyType
from typing import Any, TypeAlias

from examples.findbugs.facts import Constant
from examples.findbugs.reader import constant_pool as pools
from examples.findbugs.reader import opcodes
from examples.findbugs.reader.constant_pool import ConstantPool
from examples.findbugs.reader.cursor import Malformed, shown
from examples.findbugs.reader.loadable import loadable

Columns: TypeAlias = Callable[[bytes, int, ConstantPool], tuple[Any, ...]]

S2 = Struct(">h")
S4 = Struct(">i")
TABLE = Struct(">iii")
LOOKUP = Struct(">ii")

CALLED: Mapping[int, tuple[int, ...]] = MappingProxyType(
    {
        opcodes.INVOKEVIRTUAL: (pools.METHOD,),
        opcodes.INVOKESPECIAL: (pools.METHOD, pools.INTERFACE_METHOD),
        opcodes.INVOKESTATIC: (pools.METHOD, pools.INTERFACE_METHOD),
        opcodes.INVOKEINTERFACE: (pools.INTERFACE_METHOD,),
        opcodes.INVOKEDYNAMIC: (pools.INVOKE_DYNAMIC,),
    }
)
ELEMENTS = "ZCFDBSIJ"
"""The primitive types of arrays, by the operand of newarray from 4 on."""
DOUBLE_WORDS = ("J", "D")


def call(code: bytes, pc: int, pool: ConstantPool) -> pools.Call:
    return pool.call(code[pc + 1] << 8 | code[pc + 2], *CALLED[code[pc]])


def field(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, str, str]:
    return pool.field(code[pc + 1] << 8 | code[pc + 2])


def class_name(code: bytes, pc: int, pool: ConstantPool) -> tuple[str]:
    return (pool.class_name(code[pc + 1] << 8 | code[pc + 2]),)


def new_array(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, int]:
    kind = code[pc + 1] - 4
    if not 0 <= kind < len(ELEMENTS):
        raise Malformed(f"there is no primitive type {code[pc + 1]} of arrays")
    return ELEMENTS[kind], 1


def array_of_class(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, int]:
    return pool.class_name(code[pc + 1] << 8 | code[pc + 2]), 1


def array_of_arrays(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, int]:
    name = pool.class_name(code[pc + 1] << 8 | code[pc + 2])
    dimensions = code[pc + 3]
    if not dimensions or not name.startswith("[" * dimensions):
        raise Malformed(f"{shown(name)} has not {dimensions} dimensions to create")
    return name, dimensions


def byte(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, int]:
    return "I", (code[pc + 1] ^ 0x80) - 0x80


def short(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, int]:
    return "I", S2.unpack_from(code, pc + 1)[0]


def constant(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, Constant]:
    return _one_word(code[pc + 1], pool)


def wide_constant(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, Constant]:
    return _one_word(code[pc + 1] << 8 | code[pc + 2], pool)


def double_constant(code: bytes, pc: int, pool: ConstantPool) -> tuple[str, Constant]:
    loaded = loadable(pool, code[pc + 1] << 8 | code[pc + 2])
    if loaded[0] not in DOUBLE_WORDS:
        raise Malformed(f"ldc2_w pushes a constant of type {shown(loaded[0])}")
    return loaded


def local(code: bytes, pc: int, pool: ConstantPool) -> tuple[int]:
    return (code[pc + 1],)


def wide_local(code: bytes, pc: int, pool: ConstantPool) -> tuple[int]:
    return (code[pc + 2] << 8 | code[pc + 3],)


def increment(code: bytes, pc: int, pool: ConstantPool) -> tuple[int, int]:
    return code[pc + 1], (code[pc + 2] ^ 0x80) - 0x80


def wide_increment(code: bytes, pc: int, pool: ConstantPool) -> tuple[int, int]:
    return code[pc + 2] << 8 | code[pc + 3], S2.unpack_from(code, pc + 4)[0]


def jump(code: bytes, pc: int, pool: ConstantPool) -> tuple[int]:
    return (_inside(code, pc + S2.unpack_from(code, pc + 1)[0]),)


def wide_jump(code: bytes, pc: int, pool: ConstantPool) -> tuple[int]:
    return (_inside(code, pc + S4.unpack_from(code, pc + 1)[0]),)


def table(code: bytes, pc: int, pool: ConstantPool) -> tuple[int, int, tuple[int, ...]]:
    start = operands_of_switch(pc)
    default, low, high = TABLE.unpack_from(code, start)
    offsets = Struct(f">{high - low + 1}i").unpack_from(code, start + TABLE.size)
    return _inside(code, pc + default), low, _targets(code, pc, offsets)


def lookup(
    code: bytes, pc: int, pool: ConstantPool
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    start = operands_of_switch(pc)
    default, count = LOOKUP.unpack_from(code, start)
    pairs = Struct(f">{2 * count}i").unpack_from(code, start + LOOKUP.size)
    return _inside(code, pc + default), pairs[::2], _targets(code, pc, pairs[1::2])


def operands_of_switch(pc: int) -> int:
    """Return the place of the operands of a switch: the next multiple of four."""
    return (pc & ~3) + 4


def _one_word(index: int, pool: ConstantPool) -> tuple[str, Constant]:
    loaded = loadable(pool, index)
    if loaded[0] in DOUBLE_WORDS:
        raise Malformed(f"ldc pushes a constant of type {shown(loaded[0])}")
    return loaded


def _targets(code: bytes, pc: int, offsets: tuple[int, ...]) -> tuple[int, ...]:
    if offsets:
        _inside(code, pc + min(offsets))
        _inside(code, pc + max(offsets))
    return tuple([pc + offset for offset in offsets])


def _inside(code: bytes, target: int) -> int:
    """Return the target of a jump, which must be in the code."""
    if not 0 <= target < len(code):
        raise Malformed(f"it jumps to {target}, out of the code")
    return target


OPERANDS: Mapping[int, Columns] = MappingProxyType(
    {
        opcodes.BIPUSH: byte,
        opcodes.SIPUSH: short,
        opcodes.LDC: constant,
        opcodes.LDC_W: wide_constant,
        opcodes.LDC2_W: double_constant,
        **dict.fromkeys(range(opcodes.ILOAD, opcodes.ILOAD_0), local),
        **dict.fromkeys(range(opcodes.ISTORE, opcodes.ISTORE_0), local),
        opcodes.IINC: increment,
        **dict.fromkeys(range(opcodes.IFEQ, opcodes.RET), jump),
        opcodes.RET: local,
        opcodes.TABLESWITCH: table,
        opcodes.LOOKUPSWITCH: lookup,
        **dict.fromkeys(range(opcodes.GETSTATIC, opcodes.INVOKEVIRTUAL), field),
        **dict.fromkeys(range(opcodes.INVOKEVIRTUAL, opcodes.NEW), call),
        **dict.fromkeys((opcodes.NEW, opcodes.CHECKCAST, opcodes.INSTANCEOF), class_name),
        opcodes.NEWARRAY: new_array,
        opcodes.ANEWARRAY: array_of_class,
        opcodes.MULTIANEWARRAY: array_of_arrays,
        **dict.fromkeys((opcodes.IFNULL, opcodes.IFNONNULL), jump),
        **dict.fromkeys((opcodes.GOTO_W, opcodes.JSR_W), wide_jump),
    }
)
"""The function that reads the operands of an opcode, if it has some."""

WIDE_OPERANDS: Mapping[int, Columns] = MappingProxyType(
    {
        **dict.fromkeys(opcodes.WIDE_LENGTHS, wide_local),
        opcodes.IINC: wide_increment,
    }
)
"""The function that reads the operands of an instruction after `wide`."""
