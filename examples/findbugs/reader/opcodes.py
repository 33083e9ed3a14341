"""The instructions of the Java virtual machine: their lengths and kinds.

Source: the Java Virtual Machine Specification, chapter 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from examples.findbugs.facts import (
    Basic,
    CondJump,
    ConstInsn,
    FieldAccess,
    Goto,
    Iinc,
    Insn,
    Invoke,
    Jsr,
    LocalLoad,
    LocalStore,
    LookupSwitch,
    NewArray,
    Ret,
    TableSwitch,
    TypeInsn,
)

BIPUSH, SIPUSH, LDC, LDC_W, LDC2_W = 16, 17, 18, 19, 20
ILOAD, ILOAD_0, ISTORE, ISTORE_0, IINC = 21, 26, 54, 59, 132
IFEQ, GOTO, JSR, RET, TABLESWITCH, LOOKUPSWITCH = 153, 167, 168, 169, 170, 171
GETSTATIC, GETFIELD, INVOKEVIRTUAL, INVOKESPECIAL, INVOKESTATIC = 178, 180, 182, 183, 184
INVOKEINTERFACE, INVOKEDYNAMIC, NEW, NEWARRAY, ANEWARRAY = 185, 186, 187, 188, 189
CHECKCAST, INSTANCEOF, WIDE, MULTIANEWARRAY = 192, 193, 196, 197
IFNULL, IFNONNULL, GOTO_W, JSR_W = 198, 199, 200, 201

KINDS: Mapping[int, type[Insn]] = MappingProxyType(
    {
        **dict.fromkeys(range(JSR_W + 1), Basic),
        **dict.fromkeys(range(1, LDC2_W + 1), ConstInsn),
        **dict.fromkeys(range(ILOAD, ILOAD_0 + 20), LocalLoad),
        **dict.fromkeys(range(ISTORE, ISTORE_0 + 20), LocalStore),
        **dict.fromkeys(range(IFEQ, GOTO), CondJump),
        **dict.fromkeys((IFNULL, IFNONNULL), CondJump),
        **dict.fromkeys(range(GETSTATIC, INVOKEVIRTUAL), FieldAccess),
        **dict.fromkeys(range(INVOKEVIRTUAL, NEW), Invoke),
        **dict.fromkeys((NEW, CHECKCAST, INSTANCEOF), TypeInsn),
        **dict.fromkeys((NEWARRAY, ANEWARRAY, MULTIANEWARRAY), NewArray),
        **dict.fromkeys((GOTO, GOTO_W), Goto),
        **dict.fromkeys((JSR, JSR_W), Jsr),
        IINC: Iinc,
        RET: Ret,
        TABLESWITCH: TableSwitch,
        LOOKUPSWITCH: LookupSwitch,
    }
)
"""The kind of each opcode; `wide` stands for that of the instruction after it."""

LENGTHS: Mapping[int, int] = MappingProxyType(
    {
        **dict.fromkeys(range(JSR_W + 1), 1),
        **dict.fromkeys((BIPUSH, LDC, NEWARRAY, RET), 2),
        **dict.fromkeys(range(ILOAD, ILOAD_0), 2),
        **dict.fromkeys(range(ISTORE, ISTORE_0), 2),
        **dict.fromkeys((SIPUSH, LDC_W, LDC2_W, IINC), 3),
        **dict.fromkeys(range(IFEQ, RET), 3),
        **dict.fromkeys(range(GETSTATIC, INVOKEINTERFACE), 3),
        **dict.fromkeys((NEW, ANEWARRAY, CHECKCAST, INSTANCEOF, IFNULL, IFNONNULL), 3),
        MULTIANEWARRAY: 4,
        **dict.fromkeys((INVOKEINTERFACE, INVOKEDYNAMIC, GOTO_W, JSR_W), 5),
        **dict.fromkeys((TABLESWITCH, LOOKUPSWITCH, WIDE), 0),
    }
)
"""The bytes of each instruction; 0 if they depend on the bytes after its opcode."""

WIDE_LENGTHS: Mapping[int, int] = MappingProxyType(
    {
        **dict.fromkeys(range(ILOAD, ILOAD_0), 4),
        **dict.fromkeys(range(ISTORE, ISTORE_0), 4),
        RET: 4,
        IINC: 6,
    }
)
"""The bytes of the instructions that `wide` may precede, including it."""

IMPLIED: Mapping[int, tuple[Any, ...]] = MappingProxyType(
    {
        **{opcode: () for opcode, kind in KINDS.items() if kind is Basic},
        1: (None, None),
        **{opcode: ("I", opcode - 3) for opcode in range(2, 9)},
        **{opcode: ("J", opcode - 9) for opcode in range(9, 11)},
        **{opcode: ("F", opcode - 11.0) for opcode in range(11, 14)},
        **{opcode: ("D", opcode - 14.0) for opcode in range(14, 16)},
        **{ILOAD_0 + n: (n % 4,) for n in range(20)},
        **{ISTORE_0 + n: (n % 4,) for n in range(20)},
    }
)
"""The columns from the sixth on of those instructions that have no operands."""
