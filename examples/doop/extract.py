"""Make the facts of `logic/facts.dl` from a class file, with variables in place of the stack.

    aload_1; ldc "x"; putfield Cart.owner        Store(base=put#1, field=Cart.owner, from=put@1)

The code of a method is run over variables: the state before an instruction says which variable
each slot of the stack and each local holds, None for numbers and null. A constant, an allocation
or a call assigns a new variable; loads and stores of locals only move names. Where paths meet with
different variables in a slot, a new one is assigned from all, so each variable has one meaning.

Not modelled: results of `invokedynamic` and of methods whose code is not given, and reflection.

Source: the Java Virtual Machine Specification, chapter 6.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from examples.findbugs.facts import (
    INSTRUCTIONS,
    Basic,
    ClassDecl,
    CondJump,
    ConstInsn,
    FieldAccess,
    FieldDecl,
    Goto,
    Handler,
    Insn,
    Invoke,
    Jsr,
    LocalLoad,
    LocalStore,
    LookupSwitch,
    MethodDecl,
    NewArray,
    Ret,
    TableSwitch,
    TypeInsn,
)

Facts: TypeAlias = dict[str, set[tuple[Any, ...]]]
"""The rows of each relation of `logic/facts.dl`, by its name."""
Variable: TypeAlias = str | None


class State(NamedTuple):
    """The variables that the stack and the locals hold before an instruction."""

    stack: tuple[Variable, ...]
    local: tuple[Variable, ...]


INTERFACE, ABSTRACT, STATIC = 0x0200, 0x0400, 0x0008
THROWABLE = "java/lang/Throwable"
MAIN, INITIALIZER = "main([Ljava/lang/String;)V", "<clinit>()V"
WIDE = ("J", "D")
ALOAD_LIKE, ASTORE_LIKE = {25, *range(42, 46)}, {58, *range(75, 79)}
WIDE_LOCALS = {22, 24, *range(30, 34), *range(38, 42), 55, 57, *range(63, 67), *range(71, 75)}
AALOAD, AASTORE, ARETURN, ATHROW = 50, 83, 176, 191
RETURNS = range(172, 178)
GETSTATIC, PUTSTATIC, GETFIELD, PUTFIELD = range(178, 182)
SPECIAL, STATIC_CALL, DYNAMIC = 183, 184, 186
NEW, CHECKCAST = 187, 192
MULTIANEWARRAY, ANEWARRAY = 197, 189
MOVED_WORDS = {
    87: "a-",
    88: "ab-",
    89: "a-aa",
    90: "ab-bab",
    91: "abc-cabc",
    92: "ab-abab",
    93: "abc-bcabc",
    94: "abcd-cdabcd",
    95: "ab-ba",
}
"""pop to swap: the words that are on the stack before and after, the last one on the top."""


def _numbers() -> Iterator[tuple[int, int, int]]:
    """Yield opcodes that only compute with numbers, with the words that they pop and push."""
    for n, word in enumerate((1, 2, 1, 2, 1, 1, 1, 1)):  # int, long, float, double, reference, ...
        yield 46 + n, 2, word
        yield 79 + n, 2 + word, 0
    for n in range(20):
        word = 1 + n % 2
        yield 96 + n, 2 * word, word
    for n in range(6):
        word = 1 + n % 2
        yield 120 + n, 1 + word, word
        yield 126 + n, 2 * word, word
    for opcode, pops, pushes in zip(range(133, 145), "111222111222", "212112122121", strict=True):
        yield opcode, int(pops), int(pushes)
    yield from ((148, 4, 1), (149, 2, 1), (150, 2, 1), (151, 4, 1), (152, 4, 1))
    yield from ((190, 1, 1), (194, 1, 0), (195, 1, 0))


NUMBERS = {opcode: (pops, pushes) for opcode, pops, pushes in _numbers()}


def extract(facts: Mapping[type[Any], Any]) -> Facts:
    """Return the facts of a class, from the facts that `examples.findbugs.classfile.read` returns.

    Cost: the length of the code, times how often the variables of a slot change round its loops.
    """
    found: Facts = defaultdict(set)
    (header,) = facts[ClassDecl]
    _declare(header, facts.get(FieldDecl, ()), found)
    code: dict[str, list[Any]] = defaultdict(list)
    handlers: dict[str, list[Handler]] = defaultdict(list)
    for kind in INSTRUCTIONS:
        for instruction in facts.get(kind, ()):
            code[instruction.method].append(instruction)
    for handler in facts.get(Handler, ()):
        handlers[handler.method].append(handler)
    for method in facts.get(MethodDecl, ()):
        name = f"{method.cls}.{method.method}"
        found["DeclaredMethod"].add((name, method.cls, method.method))
        if method.access & ABSTRACT:
            found["AbstractMethod"].add((name,))
        if method.method == INITIALIZER:
            found["ClassInitializer"].add((method.cls, name))
        if method.method == MAIN and method.access & STATIC:
            found["MainMethod"].add((name,))
        if code[method.method]:
            MethodCode(name, method, code[method.method], handlers[method.method], found).run()
    return dict(found)


def _declare(header: ClassDecl, fields: Any, found: Facts) -> None:
    kind = "InterfaceType" if header.access & INTERFACE else "ClassType"
    found[kind].add((header.name,))
    if header.super is not None and kind == "ClassType":
        found["DirectSuperclass"].add((header.name, header.super))
    for interface in header.interfaces:
        found["DirectSuperinterface"].add((header.name, interface))
    for field in fields:
        key = f"{field.name}:{field.type}"
        found["DeclaredField"].add((f"{header.name}.{key}", header.name, key))


def type_of(descriptor: str) -> str:
    """Return the name of a class, or the descriptor of another type.

    >>> type_of("Lshop/Cart;"), type_of("[I")
    ('shop/Cart', '[I')
    """
    return descriptor[1:-1] if descriptor.startswith("L") else descriptor


class MethodCode:
    """One method whose code is run over variables."""

    def __init__(
        self, name: str, method: MethodDecl, code: list[Any], handlers: list[Handler], found: Facts
    ) -> None:
        self.name = name
        self.method = method
        self.code: dict[int, Insn] = {each.pc: each for each in code}
        self.handlers = handlers
        self.found = found
        self.incoming: dict[int, dict[object, State]] = defaultdict(dict)
        """The states at an instruction, by where they come from."""
        self.met: dict[int, set[tuple[str, int]]] = {}
        """The slots where different variables meet, by instruction: `("stack", 0)`."""
        self.after_calls = [each.next_pc for each in code if type(each) is Jsr]

    def run(self) -> None:
        """Run the code until no state changes, then add the facts of each instruction."""
        self.incoming[0]["start"] = self._start()
        pending = [0]
        while pending:
            pc = pending.pop()
            state = self._state(pc)
            for target, origin, after in self._successors(pc, state):
                if self.incoming[target].get(origin) != after:
                    before = self._state(target) if self.incoming[target] else None
                    self.incoming[target][origin] = after
                    if self._state(target) != before:
                        pending.append(target)
        for pc in [*self.incoming]:
            self._step(self.code[pc], self._state(pc), emit=True)
        self._assign_meetings()
        for handler in self.handlers:
            if handler.handler_pc in self.incoming:
                kind = handler.catch_type or THROWABLE
                self.found["Caught"].add((self.name, kind, self._caught(handler.handler_pc)))

    def depth(self) -> int:
        """Return the most words on the stack before an instruction that is reached."""
        return max(len(self._state(pc).stack) for pc in [*self.incoming])

    def _assign_meetings(self) -> None:
        """Add the assignments of variables where paths meet."""
        for pc, slots in self.met.items():
            for part, n in slots:
                to = self._meeting(pc, part, n)
                for state in self.incoming[pc].values():
                    held = state.stack if part == "stack" else state.local
                    if n < len(held) and held[n] not in (None, to):
                        self._add("Assign", to, held[n])

    def _start(self) -> State:
        """Return the state at the start: the parameters are in the first locals."""
        local: list[Variable] = []
        if not self.method.access & STATIC:
            local.append(f"{self.name}#this")
            self.found["This"].add((self.name, local[0]))
        for n, kind in enumerate(self.method.params):
            if kind[0] in "L[":
                local.append(f"{self.name}#{n}")
                self.found["Formal"].add((self.name, n, local[-1]))
            else:
                local.extend([None] * (2 if kind in WIDE else 1))
        return State((), tuple(local))

    def _state(self, pc: int) -> State:
        """Return the state before an instruction, of all states that reach it."""
        states = [*self.incoming[pc].values()]
        if len(states) == 1 and pc not in self.met:
            return states[0]
        return State(
            self._meet(pc, "stack", [each.stack for each in states]),
            self._meet(pc, "local", [each.local for each in states]),
        )

    def _meet(self, pc: int, part: str, rows: list[Sequence[Variable]]) -> tuple[Variable, ...]:
        """Return the variables of a part of the state, of all paths; note where they differ."""
        if pc not in self.met and rows.count(rows[0]) == len(rows):
            return tuple(rows[0])
        merged: list[Variable] = []
        for n, slots in enumerate(zip_longest(*rows)):
            variables = {variable for variable in slots if variable is not None}
            if len(variables) > 1 or (part, n) in self.met.get(pc, ()):
                self.met.setdefault(pc, set()).add((part, n))
                merged.append(self._meeting(pc, part, n))
            else:
                merged.append(variables.pop() if variables else None)
        return tuple(merged)

    def _meeting(self, pc: int, part: str, n: int) -> str:
        return f"{self.name}@{pc}:{part}{n}"

    def _caught(self, pc: int) -> str:
        return f"{self.name}@{pc}:caught"

    def _successors(self, pc: int, state: State) -> Iterator[tuple[int, object, State]]:
        """Yield the instructions that may follow, each with the state before it."""
        instruction = self.code[pc]
        after = self._step(instruction, state, emit=False)
        for target in self._targets(instruction):
            yield target, pc, after
        for n, handler in enumerate(self.handlers):
            if handler.start <= pc < handler.end:
                thrown = (self._caught(handler.handler_pc),)
                yield handler.handler_pc, (pc, n), State(thrown, state.local)

    def _targets(self, instruction: Insn) -> list[int]:
        match instruction:
            case CondJump(target=int(target)):
                return [instruction.next_pc, target]
            case Goto(target=int(target)) | Jsr(target=int(target)):
                return [target]
            case TableSwitch(default=int(default)) | LookupSwitch(default=int(default)):
                return [default, *instruction.targets]
            case Ret():
                return self.after_calls
            case Basic(opcode=opcode) if opcode in RETURNS or opcode == ATHROW:
                return []
        return [instruction.next_pc]

    def _step(self, instruction: Insn, state: State, *, emit: bool) -> State:
        """Return the state after an instruction; add its facts if `emit`."""
        step = _Step(self, instruction, state, emit=emit)
        step.run()
        return State(tuple(step.stack), tuple(step.locals))

    def _add(self, relation: str, *columns: object) -> None:
        self.found[relation].add((*columns, self.name))


class _Step:
    """The effect of one instruction on the stack and the locals."""

    def __init__(self, method: MethodCode, instruction: Insn, state: State, *, emit: bool) -> None:
        self.method = method
        self.instruction = instruction
        self.stack = [*state.stack]
        self.locals = [*state.local]
        self.emit = emit
        self.place = f"{method.name}@{instruction.pc}"

    def run(self) -> None:
        """Change the stack and the locals."""
        match self.instruction:
            case Invoke() as call:
                self._invoke(call)
            case FieldAccess() as access:
                self._field(access)
            case TypeInsn() as typed:
                self._type(typed)
            case NewArray() as array:
                self._new_array(array)
            case ConstInsn(type=kind, value=value):
                self._constant(kind, value)
            case LocalLoad(opcode=opcode, local=int(local)):
                is_object = opcode in ALOAD_LIKE and local < len(self.locals)
                value = self.locals[local] if is_object else None
                self.stack.extend([None, None] if opcode in WIDE_LOCALS else [value])
            case LocalStore(opcode=opcode, local=int(local)):
                self._store_local(local, opcode)
            case CondJump(opcode=opcode):
                self._pop(2 if 159 <= opcode <= 166 else 1)
            case TableSwitch() | LookupSwitch():
                self._pop(1)
            case Jsr():
                self.stack.append(None)
            case Basic(opcode=opcode):
                self._basic(opcode)

    def _store_local(self, local: int, opcode: int) -> None:
        width = 2 if opcode in WIDE_LOCALS else 1
        value = self._pop(width)[-1]
        self.locals.extend([None] * (local + width - len(self.locals)))
        self.locals[local : local + width] = [None] * width
        if opcode in ASTORE_LIKE:
            self.locals[local] = value

    def _pop(self, count: int) -> list[Variable]:
        """Pop words; return them, the last one from the top."""
        at = len(self.stack) - count
        words = self.stack[at:]
        del self.stack[at:]
        return words

    def _add(self, relation: str, *columns: object) -> None:
        """Add a fact, unless one of its variables holds no object."""
        if self.emit and None not in columns:
            self.method._add(relation, *columns)

    def _member(self, relation: str, *columns: object) -> None:
        """Add a fact that does not name the method."""
        if self.emit and None not in columns:
            self.method.found[relation].add(columns)

    def _allocate(self, text: str, kind: str, suffix: str = "") -> str:
        variable = self.place + suffix
        self._add("Allocate", f"{variable} {text}", kind, variable)
        return variable

    def _push(self, kind: str, variable: Variable) -> None:
        self.stack.extend([None, None] if kind in WIDE else [variable] if kind != "V" else [])

    def _invoke(self, call: Invoke) -> None:
        words = self._pop(sum(2 if kind in WIDE else 1 for kind in call.params))
        base = None
        if call.opcode not in (STATIC_CALL, DYNAMIC):
            (base,) = self._pop(1)
        is_object = call.ret[0] in "L[" and call.opcode != DYNAMIC
        result = self.place if is_object else None
        self._push(call.ret, result)
        if call.opcode == DYNAMIC:
            return
        receiver = call.receiver or ""
        named = "java/lang/Object" if receiver.startswith("[") else receiver
        descriptor = f"{call.name}({''.join(call.params)}){call.ret}"
        target = (named, descriptor)
        if call.opcode == STATIC_CALL:
            self._add("StaticInvoke", self.place, *target)
        elif call.opcode == SPECIAL:
            self._add("SpecialInvoke", self.place, base, *target)
        else:
            self._add("VirtualInvoke", self.place, base, *target)
        at = 0
        for n, kind in enumerate(call.params):
            self._member("Actual", self.place, n, words[at])
            at += 2 if kind in WIDE else 1
        self._member("ResultOf", self.place, result)

    def _field(self, access: FieldAccess) -> None:
        name = f"{access.name}:{access.type}"
        field = f"{access.owner}.{name}"
        width = 2 if access.type in WIDE else 1
        value = self._pop(width)[-1] if access.opcode in (PUTSTATIC, PUTFIELD) else None
        base = self._pop(1)[0] if access.opcode in (GETFIELD, PUTFIELD) else None
        if access.type[0] in "L[":
            self._member("FieldReference", field, access.owner, name)
        to = self.place if access.type[0] in "L[" else None
        match access.opcode:
            case 178:
                self._add("StaticLoad", to, field)
            case 179:
                self._add("StaticStore", field, value)
            case 180:
                self._add("Load", to, base, field)
            case 181:
                self._add("Store", base, field, value)
        if access.opcode in (GETSTATIC, GETFIELD):
            self._push(access.type, to)

    def _type(self, typed: TypeInsn) -> None:
        if typed.opcode == NEW:
            self.stack.append(self._allocate(f"new {typed.type}", typed.type))
            return
        (value,) = self._pop(1)
        is_cast = typed.opcode == CHECKCAST and value is not None
        if is_cast:
            self._add("Cast", typed.type, self.place, value)
            self._array_type(typed.type)
        self.stack.append(self.place if is_cast else None)

    def _new_array(self, array: NewArray) -> None:
        dimensions = array.dimensions or 1
        self._pop(dimensions)
        kind = array.type or "I"
        if array.opcode == ANEWARRAY:
            kind = f"[{kind}" if kind.startswith("[") else f"[L{kind};"
        elif array.opcode != MULTIANEWARRAY:
            kind = f"[{kind}"
        outer = variable = self._allocate(f"new {kind}", kind)
        self._array_type(kind)
        for n in range(1, dimensions):
            inner = self._allocate(f"new {kind[n:]}", kind[n:], f"+{n}")
            self._add("ArrayStore", outer, inner)
            outer = inner
        self.stack.append(variable)

    def _array_type(self, kind: str) -> None:
        while kind.startswith("["):
            self._member("ArrayType", kind, type_of(kind[1:]))
            kind = kind[1:]

    def _constant(self, kind: str | None, value: object) -> None:
        if kind is None or kind[0] not in "L[":
            self._push(kind or "I", None)
        else:
            self.stack.append(self._allocate(repr(value), type_of(kind)))

    def _basic(self, opcode: int) -> None:
        if opcode in MOVED_WORDS:
            before, after = MOVED_WORDS[opcode].split("-")
            words = dict(zip(before, self._pop(len(before)), strict=True))
            self.stack.extend([words[word] for word in after])
        elif opcode == AALOAD:
            base, _ = self._pop(2)
            self._add("ArrayLoad", self.place, base)
            self.stack.append(self.place if base is not None else None)
        elif opcode == AASTORE:
            base, _, value = self._pop(3)
            self._add("ArrayStore", base, value)
        elif opcode == ARETURN:
            self._member("Returned", self.method.name, *self._pop(1))
        elif opcode == ATHROW:
            self._member("Thrown", self.method.name, *self._pop(1))
        elif opcode in NUMBERS:
            pops, pushes = NUMBERS[opcode]
            self._pop(pops)
            self.stack.extend([None] * pushes)
