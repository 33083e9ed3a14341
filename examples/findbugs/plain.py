"""The fifteen analyses as plain Python, over all facts from scratch: the oracle of the views.

Each is written as for a single run: with comprehensions, and sets and dictionaries for look-ups.
They use nothing of the library or of the queries, except names of flags.

Cost: O(facts of the kinds that an analysis reads), and the size of `subtype` for M.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeAlias

from examples.findbugs.access import (
    ABSTRACT,
    FINAL,
    INTERFACE,
    NATIVE,
    PRIVATE,
    PROTECTED,
    PUBLIC,
    STATIC,
    SYNCHRONIZED,
    SYNTHETIC,
    VOLATILE,
)
from examples.findbugs.facts import (
    ClassDecl,
    Fact,
    FieldAccess,
    FieldDecl,
    Handler,
    InnerClass,
    Invoke,
    MethodDecl,
)
from examples.findbugs.reader.opcodes import (
    GETFIELD,
    GETSTATIC,
    INVOKESPECIAL,
    INVOKESTATIC,
    INVOKEVIRTUAL,
)

Base: TypeAlias = Mapping[type[Fact], Iterable[Any]]
"""All facts of a program by kind; each can be gone through more than once."""

UNWRITTEN = ABSTRACT | SYNTHETIC
UNMADE = INTERFACE | ABSTRACT
UNCALLED = ABSTRACT | STATIC | NATIVE | PRIVATE
HIDDEN = SYNTHETIC | VOLATILE
OPEN = PUBLIC | PROTECTED
OBJECT = "Ljava/lang/Object;"
HASHTABLE = "Ljava/util/Hashtable;"
PRIVILEGED = {"java/security/PrivilegedAction", "java/security/PrivilegedExceptionAction"}


def boxing(base: Base) -> set[Any]:
    """`v` of a boxing call `s` and a call `v` that unboxes what it made, as another type."""
    new_classes = {c.name for c in base[ClassDecl] if c.major >= 49}
    boxed = {
        (i.cls, i.method, i.receiver, i.next_pc): i.params[0]
        for i in base[Invoke]
        if i.opcode == INVOKESPECIAL
        and len(i.params) == 1
        and i.params[0][0] not in "L["
        and _package(i.receiver) == "java/lang"
        and i.cls in new_classes
    }
    return {
        i
        for i in base[Invoke]
        if i.opcode == INVOKEVIRTUAL
        and i.params == ()
        and i.name.endswith("Value")
        and boxed.get((i.cls, i.method, i.receiver, i.pc), i.ret) != i.ret
    }


def confused_inheritance(base: Base) -> set[Any]:
    """Protected fields of final classes."""
    final = {c.name for c in base[ClassDecl] if c.access & FINAL}
    return {f for f in base[FieldDecl] if f.access & PROTECTED and f.cls in final}


def clone_missing(base: Base) -> set[Any]:
    """Concrete Cloneable classes without a `clone`, and without a call of one."""
    having = {
        m.cls
        for m in base[MethodDecl]
        if m.name == "clone" and m.params == () and m.access & PUBLIC and not m.access & UNWRITTEN
    }
    calling = {i.cls for i in base[Invoke] if i.name == "clone" and i.params == ()}
    return {
        c.name
        for c in base[ClassDecl]
        if not c.access & UNMADE
        and "java/lang/Cloneable" in c.interfaces
        and c.name not in having
        and c.name not in calling
    }


def clone_without_super(base: Base) -> set[Any]:
    """`Object clone()` that does not call that of its superclass."""
    supers = {c.name: c.super for c in base[ClassDecl] if c.super is not None}
    calls = {
        (i.cls, i.method, i.receiver)
        for i in base[Invoke]
        if i.opcode == INVOKESPECIAL and i.name == "clone" and i.params == () and i.ret == OBJECT
    }
    return {
        m
        for m in base[MethodDecl]
        if m.name == "clone"
        and m.params == ()
        and m.ret == OBJECT
        and not m.access & ABSTRACT
        and m.cls in supers
        and (m.cls, m.method, supers[m.cls]) not in calls
    }


def garbage_collected(base: Base) -> set[Any]:
    """Calls of `gc` of System or Runtime, outside of java.lang."""
    return {
        i
        for i in base[Invoke]
        if i.name == "gc"
        and i.params == ()
        and i.ret == "V"
        and (i.opcode, i.receiver)
        in {(INVOKESTATIC, "java/lang/System"), (INVOKEVIRTUAL, "java/lang/Runtime")}
        and not i.cls.startswith("java/lang")
    }


def finalizers_run(base: Base) -> set[Any]:
    """Calls of `runFinalizersOnExit`."""
    return {
        i
        for i in base[Invoke]
        if i.name == "runFinalizersOnExit"
        and i.opcode == INVOKESTATIC
        and i.receiver in {"java/lang/System", "java/lang/Runtime"}
        and i.params == ("Z",)
        and i.ret == "V"
    }


def made_accessible(base: Base) -> set[Any]:
    """Calls of `setAccessible` in classes that are no privileged actions."""
    privileged = {c.name for c in base[ClassDecl] if not PRIVILEGED.isdisjoint(c.interfaces)}
    return {
        i
        for i in base[Invoke]
        if i.name == "setAccessible"
        and i.opcode == INVOKEVIRTUAL
        and i.receiver in {"java/lang/reflect/Field", "java/lang/reflect/Method"}
        and i.cls not in privileged
    }


def abstract_equals(base: Base) -> set[Any]:
    """Abstract `boolean equals` of its own class."""
    return {
        m
        for m in base[MethodDecl]
        if m.name == "equals"
        and m.access & ABSTRACT
        and m.params == (f"L{m.cls};",)
        and m.ret == "Z"
    }


def public_finalize(base: Base) -> set[Any]:
    """Public `void finalize()`."""
    return {
        m
        for m in base[MethodDecl]
        if m.name == "finalize" and m.access & PUBLIC and m.params == () and m.ret == "V"
    }


def monitor_state_caught(base: Base) -> set[Any]:
    """Methods that catch IllegalMonitorStateException."""
    caught = "java/lang/IllegalMonitorStateException"
    return {(h.cls, h.method) for h in base[Handler] if h.catch_type == caught}


def open_arrays(base: Base) -> set[Any]:
    """Open static arrays and tables, final, that no other package reads."""
    read = {
        (a.owner, a.name, a.type)
        for a in base[FieldAccess]
        if a.opcode in (GETSTATIC, GETFIELD) and _package(a.cls) != _package(a.owner)
    }
    return {
        f
        for f in _open_static_fields(base)
        if f.access & FINAL
        and (f.type[0] == "[" or f.type == HASHTABLE)
        and (f.cls, f.name, f.type) not in read
    }


def open_fields(base: Base) -> set[Any]:
    """Open static fields of other types, not final."""
    return {
        f
        for f in _open_static_fields(base)
        if not f.access & FINAL and f.type[0] != "[" and f.type != HASHTABLE
    }


def serializable_inside(base: Base) -> set[Any]:
    """Serializable nested classes, in a class that is not."""
    above = subtype(base)
    serializable = {c.name for c in base[ClassDecl] if "java/io/Serializable" in c.interfaces}
    return {
        (n.inner, n.outer)
        for n in base[InnerClass]
        if n.cls == n.inner
        and n.outer is not None
        and not n.access & STATIC
        and n.inner in serializable
        and "java/io/Serializable" not in above.get(n.outer, ())
    }


def swing_in_main(base: Base) -> set[Any]:
    """Windows shown in a main method, or in a class called benchmark."""
    main = {
        (m.cls, m.method)
        for m in base[MethodDecl]
        if m.name == "main" and m.access & PUBLIC and m.access & STATIC
    }
    shown = {("show", ()), ("pack", ()), ("setVisible", ("Z",))}
    return {
        i
        for i in base[Invoke]
        if i.opcode == INVOKEVIRTUAL
        and i.ret == "V"
        and (i.name, i.params) in shown
        and i.receiver.startswith("javax/swing/")
        and ((i.cls, i.method) in main or "benchmark" in i.cls.lower())
    }


def unequal_locks(base: Base) -> set[Any]:
    """Synchronized setters, each with the getters of its name that are not."""
    interfaces = {c.name for c in base[ClassDecl] if c.access & INTERFACE}
    classes = {c.name for c in base[ClassDecl]} - interfaces
    having_code = [
        m for m in base[MethodDecl] if not m.access & UNCALLED and m.name[:3] in {"get", "set"}
    ]
    getters: dict[Hashable, list[Any]] = {}
    for m in having_code:
        if m.name[:3] == "get" and not m.access & SYNCHRONIZED and m.params == () and m.ret != "V":
            getters.setdefault((m.cls, m.name[3:]), []).append(m)
    return {
        (m, getter)
        for m in having_code
        if m.name[:3] == "set"
        and m.access & SYNCHRONIZED
        and len(m.params) == 1
        and m.ret == "V"
        and m.cls in classes
        for getter in getters.get((m.cls, m.name[3:]), ())
    }


PLAIN: dict[str, Callable[[Base], set[Any]]] = {
    "A": boxing,
    "B": confused_inheritance,
    "C": clone_missing,
    "D": clone_without_super,
    "E": garbage_collected,
    "F": finalizers_run,
    "G": made_accessible,
    "H": abstract_equals,
    "I": public_finalize,
    "J": monitor_state_caught,
    "K": open_arrays,
    "L": open_fields,
    "M": serializable_inside,
    "N": swing_in_main,
    "O": unequal_locks,
}
"""The analyses by letter."""


def subtype(base: Base) -> dict[str, set[str]]:
    """Return each class of the program with all classes above it."""
    direct = {c.name: [*c.interfaces, *filter(None, [c.super])] for c in base[ClassDecl]}
    above: dict[str, set[str]] = {}
    for name, found in direct.items():
        above[name] = set()
        waiting = [*found]
        while waiting:
            one = waiting.pop()
            if one not in above[name]:
                above[name].add(one)
                waiting += direct.get(one, ())
    return above


def _open_static_fields(base: Base) -> list[Any]:
    classes = {c.name for c in base[ClassDecl] if not c.access & INTERFACE}
    return [
        f
        for f in base[FieldDecl]
        if f.access & STATIC and not f.access & HIDDEN and f.access & OPEN and f.cls in classes
    ]


def _package(name: str) -> str:
    return name.rpartition("/")[0]
