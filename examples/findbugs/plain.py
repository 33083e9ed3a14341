"""The fifteen analyses as plain Python, over all facts from scratch: what the views have to equal.

Each is written as one would write it for a single run: comprehensions, with sets and dictionaries
for what is looked up. They use nothing of the library, nor of the queries.

Cost: O(facts of the kinds that an analysis reads), and the size of `subtype` for M.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeAlias

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

Base: TypeAlias = Mapping[type[Fact], Iterable[Any]]
"""All facts of a program by kind; each can be gone through more than once."""

OBJECT = "Ljava/lang/Object;"
HASHTABLE = "Ljava/util/Hashtable;"
PRIVILEGED = {"java/security/PrivilegedAction", "java/security/PrivilegedExceptionAction"}


def a(base: Base) -> set[Any]:
    new_classes = {c.name for c in base[ClassDecl] if c.major >= 49}
    boxed = {
        (i.cls, i.method, i.receiver, i.next_pc): i.params[0]
        for i in base[Invoke]
        if i.opcode == 183
        and len(i.params) == 1
        and i.params[0][0] not in "L["
        and _package(i.receiver) == "java/lang"
        and i.cls in new_classes
    }
    return {
        i
        for i in base[Invoke]
        if i.opcode == 182
        and i.params == ()
        and i.name.endswith("Value")
        and boxed.get((i.cls, i.method, i.receiver, i.pc), i.ret) != i.ret
    }


def b(base: Base) -> set[Any]:
    final = {c.name for c in base[ClassDecl] if c.access & 16}
    return {f for f in base[FieldDecl] if f.access & 4 and f.cls in final}


def c(base: Base) -> set[Any]:
    having = {
        m.cls
        for m in base[MethodDecl]
        if m.name == "clone" and m.params == () and m.access & 1 and not m.access & 0x1400
    }
    calling = {i.cls for i in base[Invoke] if i.name == "clone" and i.params == ()}
    return {
        c.name
        for c in base[ClassDecl]
        if not c.access & 0x600
        and "java/lang/Cloneable" in c.interfaces
        and c.name not in having
        and c.name not in calling
    }


def d(base: Base) -> set[Any]:
    supers = {c.name: c.super for c in base[ClassDecl] if c.super is not None}
    calls = {
        (i.cls, i.method, i.receiver)
        for i in base[Invoke]
        if i.opcode == 183 and i.name == "clone" and i.params == () and i.ret == OBJECT
    }
    return {
        m
        for m in base[MethodDecl]
        if m.name == "clone"
        and m.params == ()
        and m.ret == OBJECT
        and not m.access & 0x400
        and m.cls in supers
        and (m.cls, m.method, supers[m.cls]) not in calls
    }


def e(base: Base) -> set[Any]:
    return {
        i
        for i in base[Invoke]
        if i.name == "gc"
        and i.params == ()
        and i.ret == "V"
        and (i.opcode, i.receiver) in {(184, "java/lang/System"), (182, "java/lang/Runtime")}
        and not i.cls.startswith("java/lang")
    }


def f(base: Base) -> set[Any]:
    return {
        i
        for i in base[Invoke]
        if i.name == "runFinalizersOnExit"
        and i.opcode == 184
        and i.receiver in {"java/lang/System", "java/lang/Runtime"}
        and i.params == ("Z",)
        and i.ret == "V"
    }


def g(base: Base) -> set[Any]:
    privileged = {c.name for c in base[ClassDecl] if not PRIVILEGED.isdisjoint(c.interfaces)}
    return {
        i
        for i in base[Invoke]
        if i.name == "setAccessible"
        and i.opcode == 182
        and i.receiver in {"java/lang/reflect/Field", "java/lang/reflect/Method"}
        and i.cls not in privileged
    }


def h(base: Base) -> set[Any]:
    return {
        m
        for m in base[MethodDecl]
        if m.name == "equals" and m.access & 0x400 and m.params == (f"L{m.cls};",) and m.ret == "Z"
    }


def i(base: Base) -> set[Any]:
    return {
        m
        for m in base[MethodDecl]
        if m.name == "finalize" and m.access & 1 and m.params == () and m.ret == "V"
    }


def j(base: Base) -> set[Any]:
    caught = "java/lang/IllegalMonitorStateException"
    return {(h.cls, h.method) for h in base[Handler] if h.catch_type == caught}


def k(base: Base) -> set[Any]:
    read = {
        (a.owner, a.name, a.type)
        for a in base[FieldAccess]
        if a.opcode in (178, 180) and _package(a.cls) != _package(a.owner)
    }
    return {
        f
        for f in _open_static_fields(base)
        if f.access & 16
        and (f.type[0] == "[" or f.type == HASHTABLE)
        and (f.cls, f.name, f.type) not in read
    }


def l(base: Base) -> set[Any]:  # noqa: E743
    return {
        f
        for f in _open_static_fields(base)
        if not f.access & 16 and f.type[0] != "[" and f.type != HASHTABLE
    }


def m(base: Base) -> set[Any]:
    above = subtype(base)
    serializable = {c.name for c in base[ClassDecl] if "java/io/Serializable" in c.interfaces}
    return {
        (n.inner, n.outer)
        for n in base[InnerClass]
        if n.cls == n.inner
        and n.outer is not None
        and not n.access & 8
        and n.inner in serializable
        and "java/io/Serializable" not in above.get(n.outer, ())
    }


def n(base: Base) -> set[Any]:
    main = {(m.cls, m.method) for m in base[MethodDecl] if m.name == "main" and m.access & 9 == 9}
    shown = {("show", ()), ("pack", ()), ("setVisible", ("Z",))}
    return {
        i
        for i in base[Invoke]
        if i.opcode == 182
        and i.ret == "V"
        and (i.name, i.params) in shown
        and i.receiver.startswith("javax/swing/")
        and ((i.cls, i.method) in main or "benchmark" in i.cls.lower())
    }


def o(base: Base) -> set[Any]:
    interfaces = {c.name for c in base[ClassDecl] if c.access & 0x200}
    classes = {c.name for c in base[ClassDecl]} - interfaces
    having_code = [
        m for m in base[MethodDecl] if not m.access & 0x50A and m.name[:3] in {"get", "set"}
    ]
    getters: dict[Hashable, list[Any]] = {}
    for m in having_code:
        if m.name[:3] == "get" and not m.access & 32 and m.params == () and m.ret != "V":
            getters.setdefault((m.cls, m.name[3:]), []).append(m)
    return {
        (m, getter)
        for m in having_code
        if m.name[:3] == "set"
        and m.access & 32
        and len(m.params) == 1
        and m.ret == "V"
        and m.cls in classes
        for getter in getters.get((m.cls, m.name[3:]), ())
    }


PLAIN: dict[str, Callable[[Base], set[Any]]] = {
    function.__name__.upper(): function
    for function in (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
}
"""By letter."""


def subtype(base: Base) -> dict[str, set[str]]:
    """Each class that the program has, with all that is above it."""
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
    classes = {c.name for c in base[ClassDecl] if not c.access & 0x200}
    return [
        f
        for f in base[FieldDecl]
        if f.access & 8 and not f.access & 0x1040 and f.access & 5 and f.cls in classes
    ]


def _package(name: str) -> str:
    return name.rpartition("/")[0]
