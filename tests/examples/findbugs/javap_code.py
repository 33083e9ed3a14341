"""The code of a method as javap prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from examples.findbugs import facts as f
from tests.examples.findbugs.javap_pool import Pool

IN_ORDER = """
nop aconst_null iconst_m1 iconst_0 iconst_1 iconst_2 iconst_3 iconst_4 iconst_5 lconst_0 lconst_1
fconst_0 fconst_1 fconst_2 dconst_0 dconst_1 bipush sipush ldc ldc_w ldc2_w iload lload fload dload
aload iload_0 iload_1 iload_2 iload_3 lload_0 lload_1 lload_2 lload_3 fload_0 fload_1 fload_2
fload_3 dload_0 dload_1 dload_2 dload_3 aload_0 aload_1 aload_2 aload_3 iaload laload faload daload
aaload baload caload saload istore lstore fstore dstore astore istore_0 istore_1 istore_2 istore_3
lstore_0 lstore_1 lstore_2 lstore_3 fstore_0 fstore_1 fstore_2 fstore_3 dstore_0 dstore_1 dstore_2
dstore_3 astore_0 astore_1 astore_2 astore_3 iastore lastore fastore dastore aastore bastore
castore sastore pop pop2 dup dup_x1 dup_x2 dup2 dup2_x1 dup2_x2 swap iadd ladd fadd dadd isub lsub
fsub dsub imul lmul fmul dmul idiv ldiv fdiv ddiv irem lrem frem drem ineg lneg fneg dneg ishl lshl
ishr lshr iushr lushr iand land ior lor ixor lxor iinc i2l i2f i2d l2i l2f l2d f2i f2l f2d d2i d2l
d2f i2b i2c i2s lcmp fcmpl fcmpg dcmpl dcmpg ifeq ifne iflt ifge ifgt ifle if_icmpeq if_icmpne
if_icmplt if_icmpge if_icmpgt if_icmple if_acmpeq if_acmpne goto jsr ret tableswitch lookupswitch
ireturn lreturn freturn dreturn areturn return getstatic putstatic getfield putfield invokevirtual
invokespecial invokestatic invokeinterface invokedynamic new newarray anewarray arraylength athrow
checkcast instanceof monitorenter monitorexit wide multianewarray ifnull ifnonnull goto_w jsr_w
"""
OPCODES = {mnemonic: opcode for opcode, mnemonic in enumerate(IN_ORDER.split())}
SORTS = {"i": "I", "l": "J", "f": "F", "d": "D"}
PRIMITIVES = {
    "boolean": "Z",
    "char": "C",
    "float": "F",
    "double": "D",
    "byte": "B",
    "short": "S",
    "int": "I",
    "long": "J",
}
SIZES = {2: "bipush ldc newarray", 4: "multianewarray", 6: "iinc_w"} | {
    5: "invokeinterface invokedynamic goto_w jsr_w",
    3: "sipush ldc_w ldc2_w iinc",
}

SIZE = re.compile(r" *stack=(\d+), locals=(\d+)")
INSTRUCTION = re.compile(r" *(\d+): (\w+) *([^/]*)")
KEY = re.compile(r" *(-?\d+|default): (\d+)$")
HANDLER = re.compile(r" *(\d+) +(\d+) +(\d+) +(?:any|Class (\S+))$")


def code_facts(lines: list[str], cls: str, method: str, pool: Pool) -> Iterator[f.Fact]:
    """The facts of the code that begins with the line of its stack."""
    stack, locals_ = map(int, SIZE.match(lines[0]).groups())  # type: ignore[union-attr]
    found = list(_instructions(lines[1:]))
    starts = [pc for pc, *_ in found]
    end = _end(*found[-1])
    for (pc, mnemonic, operand, keys), next_pc in zip(found, [*starts[1:], end], strict=True):
        assert _end(pc, mnemonic, operand, keys) == next_pc
        yield _instruction((cls, method, pc), mnemonic, next_pc, operand, keys, pool)
    yield f.Code(cls, method, end, stack, locals_)
    if "      Exception table:" in lines:
        for line in lines[lines.index("      Exception table:") + 2 :]:
            match = HANDLER.match(line)
            if not match:
                break
            start, until, at = map(int, match.groups()[:3])
            yield f.Handler(cls, method, start, until, at, match[4])


def _instructions(lines: list[str]) -> Iterator[tuple[int, str, str, dict[str, int]]]:
    """The pc, mnemonic, operand and, of a switch, targets by key."""
    rest = iter(lines)
    for line in rest:
        match = INSTRUCTION.match(line)
        if not match:
            return
        keys: dict[str, int] = {}
        if match[2].endswith("switch"):
            while entry := KEY.match(next(rest)):
                keys[entry[1]] = int(entry[2])
        yield int(match[1]), match[2], match[3].strip(), keys


def _end(pc: int, mnemonic: str, operand: str, keys: dict[str, int]) -> int:
    """Return the pc of the next instruction."""
    if mnemonic == "tableswitch":
        return (pc & ~3) + 16 + 4 * (len(keys) - 1)
    if mnemonic == "lookupswitch":
        return (pc & ~3) + 12 + 8 * (len(keys) - 1)
    for size, mnemonics in SIZES.items():
        if mnemonic in mnemonics.split():
            return pc + size
    if not operand:
        return pc + 1
    if mnemonic.endswith("_w"):
        return pc + 4
    is_local = re.fullmatch(r"[ilfda](load|store)|ret", mnemonic)
    return pc + (2 if is_local else 3)


def _instruction(
    place: tuple[str, str, int],
    mnemonic: str,
    next_pc: int,
    operand: str,
    keys: dict[str, int],
    pool: Pool,
) -> f.Fact:
    opcode = OPCODES.get(mnemonic) or OPCODES[mnemonic.removesuffix("_w")]
    row = (*place, opcode, next_pc)
    numbers = [int(n) for n in re.findall(r"-?\d+", operand)]
    local = numbers or [int(n) for n in re.findall(r"_(\d)$", mnemonic)]
    default = keys.pop("default", 0)
    base = mnemonic.removesuffix("_w")
    match base:
        case "invokedynamic":
            name, descriptor = pool.texts(pool.numbers(numbers[0])[1])
            return f.Invoke(*row, None, name, *signature(descriptor))
        case "invokevirtual" | "invokespecial" | "invokestatic" | "invokeinterface":
            owner, name, descriptor = pool.member(numbers[0])
            return f.Invoke(*row, owner, name, *signature(descriptor))
        case "getstatic" | "putstatic" | "getfield" | "putfield":
            return f.FieldAccess(*row, *pool.member(numbers[0]))
        case "new" | "checkcast" | "instanceof":
            return f.TypeInsn(*row, pool.name(numbers[0]))
        case "newarray":
            return f.NewArray(*row, PRIMITIVES[operand], 1)
        case "anewarray" | "multianewarray":
            return f.NewArray(*row, pool.name(numbers[0]), numbers[1] if numbers[1:] else 1)
        case "aconst_null":
            return f.ConstInsn(*row, None, None)
        case "ldc" | "ldc2":
            return f.ConstInsn(*row, *pool.loadable(numbers[0]))
        case "bipush" | "sipush":
            return f.ConstInsn(*row, "I", numbers[0])
        case "iinc":
            return f.Iinc(*row, numbers[0], numbers[1])
        case "ret":
            return f.Ret(*row, local[0])
        case "goto":
            return f.Goto(*row, numbers[0])
        case "jsr":
            return f.Jsr(*row, numbers[0])
        case "tableswitch":
            return f.TableSwitch(*row, default, int(next(iter(keys))), tuple(keys.values()))
        case "lookupswitch":
            return f.LookupSwitch(*row, default, tuple(map(int, keys)), tuple(keys.values()))
    if re.match(r"[ilfd]const_", base):
        number = -1 if base.endswith("m1") else int(base[-1])
        return f.ConstInsn(*row, SORTS[base[0]], number)
    if re.match(r"[ilfda]load", base):
        return f.LocalLoad(*row, local[0])
    if re.match(r"[ilfda]store", base):
        return f.LocalStore(*row, local[0])
    if base.startswith("if"):
        return f.CondJump(*row, numbers[0])
    assert not operand
    return f.Basic(*row)


def signature(descriptor: str) -> tuple[tuple[str, ...], str]:
    """The parameters and the result of a method."""
    inside, _, ret = descriptor[1:].partition(")")
    return tuple(re.findall(r"\[*(?:L[^;]*;|[A-Z])", inside)), ret
