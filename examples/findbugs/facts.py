"""The facts that one class file states: the rows of all tables.

Facts refer to each other by keys, never by holding one another. A class is known by its name as
class files have it, `java/util/Map$Entry`; a method by its class and its name with its descriptor,
`put(Ljava/lang/Object;)V`, and an instruction by its method and `pc`, the place of its first byte.
Types are descriptors, `I` or `[Ljava/lang/String;`; classes are names. So a class whose header
changes keeps all its other facts.

All facts are named tuples of values, which are quick to build, to hash and to compare. No class
file states the same fact twice.

Source: [i3ql] section 6, its tables; the Java Virtual Machine Specification, chapter 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, get_args

Constant: TypeAlias = int | float | str | None


class ClassDecl(NamedTuple):
    """A class or interface, as its file's header declares it."""

    name: str
    major: int
    """The version of the class file: 52 is Java 8, 61 is Java 17."""
    access: int
    super: str | None
    """None for java/lang/Object and for modules."""
    interfaces: tuple[str, ...]
    """The interfaces that the class lists itself."""


class MethodDecl(NamedTuple):
    """A method, constructor or static initialiser."""

    cls: str
    method: str
    """The key: name and descriptor."""
    access: int
    name: str
    params: tuple[str, ...]
    ret: str


class FieldDecl(NamedTuple):
    """A field."""

    cls: str
    access: int
    name: str
    type: str
    value: Constant
    """The constant of a field that has a ConstantValue; `type` tells a string from a number."""


class Code(NamedTuple):
    """A method has code."""

    cls: str
    method: str
    length: int
    max_stack: int
    max_locals: int


class Handler(NamedTuple):
    """An entry of a method's exception table."""

    cls: str
    method: str
    start: int
    end: int
    handler_pc: int
    catch_type: str | None
    """None catches everything, as `finally` does."""


class InnerClass(NamedTuple):
    """An entry of a class's InnerClasses attribute: of one nested class that it mentions."""

    cls: str
    """The class whose attribute it is."""
    inner: str
    outer: str | None
    """None for local and anonymous classes."""
    inner_name: str | None
    access: int


class EnclosingMethod(NamedTuple):
    """The method that encloses a local or anonymous class."""

    cls: str
    outer: str
    method: str | None
    """None outside all methods, as in the initialiser of a field."""


class Throws(NamedTuple):
    """A method declares an exception."""

    cls: str
    method: str
    exception: str


class Invoke(NamedTuple):
    """invokevirtual 182, invokespecial 183, invokestatic 184, invokeinterface 185 and
    invokedynamic 186, which has no receiver."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    receiver: str | None
    """The class named in the call; the descriptor where it is an array."""
    name: str
    params: tuple[str, ...]
    ret: str


class FieldAccess(NamedTuple):
    """getstatic 178, putstatic 179, getfield 180 and putfield 181."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    owner: str
    name: str
    type: str


class TypeInsn(NamedTuple):
    """new 187, checkcast 192 and instanceof 193."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    type: str
    """The class; the descriptor where it is an array."""


class NewArray(NamedTuple):
    """newarray 188, anewarray 189 and multianewarray 197."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    type: str | None
    """188: the descriptor of an element; 189: the class of an element, the descriptor where that
    is an array; 197: the descriptor of the whole array. None if it is not known."""
    dimensions: int | None
    """The number of lengths on the stack: 1, except for 197."""


class ConstInsn(NamedTuple):
    """aconst_null 1 to ldc2_w 20: push a constant."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    type: str | None
    """The descriptor of the constant, `Ljava/lang/Class;` for a class and so on. None for
    aconst_null, and if it is not known."""
    value: Constant
    """A number or string; the name of a class; the descriptor of a method type; the name of a
    dynamic constant; `Owner.name` and descriptor of a method handle. None as above."""


class LocalLoad(NamedTuple):
    """iload 21 to aload_3 45: push a local variable."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    local: int | None


class LocalStore(NamedTuple):
    """istore 54 to astore_3 78: pop into a local variable."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    local: int | None


class Iinc(NamedTuple):
    """iinc 132: add to a local variable."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    local: int | None
    by: int | None


class Ret(NamedTuple):
    """ret 169: return from a subroutine, of Java 6 and before."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    local: int | None


class CondJump(NamedTuple):
    """ifeq 153 to if_acmpne 166, ifnull 198 and ifnonnull 199."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    target: int | None


class Goto(NamedTuple):
    """goto 167 and goto_w 200."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    target: int | None


class Jsr(NamedTuple):
    """jsr 168 and jsr_w 201: call a subroutine, of Java 6 and before."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    target: int | None


class TableSwitch(NamedTuple):
    """tableswitch 170."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    default: int | None
    low: int | None
    targets: tuple[int, ...]
    """The targets of the keys from `low` on."""


class LookupSwitch(NamedTuple):
    """lookupswitch 171."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int
    default: int | None
    keys: tuple[int, ...]
    targets: tuple[int, ...]


class Basic(NamedTuple):
    """Every other instruction: of the stack, arithmetic, arrays, returns, monitors, athrow."""

    cls: str
    method: str
    pc: int
    opcode: int
    next_pc: int


Insn: TypeAlias = (
    Invoke
    | FieldAccess
    | TypeInsn
    | NewArray
    | ConstInsn
    | LocalLoad
    | LocalStore
    | Iinc
    | Ret
    | CondJump
    | Goto
    | Jsr
    | TableSwitch
    | LookupSwitch
    | Basic
)
Fact: TypeAlias = (
    ClassDecl
    | MethodDecl
    | FieldDecl
    | Code
    | Handler
    | InnerClass
    | EnclosingMethod
    | Throws
    | Insn
)
Facts: TypeAlias = Mapping[type[Fact], Sequence[Fact]]
"""Facts of a class file by kind, each once; kinds without facts are absent."""

INSTRUCTIONS: tuple[type[Insn], ...] = get_args(Insn)
KINDS: tuple[type[Fact], ...] = get_args(Fact)
