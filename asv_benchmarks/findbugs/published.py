"""Three analyses as [i3ql] writes them: every condition on the product of the tables.

The example's own put conditions of one table before the join, as a careful author does; then there
is little left to do for the optimizer.
"""

from __future__ import annotations

from examples.findbugs.access import (
    ABSTRACT,
    INTERFACE,
    PUBLIC,
    SYNTHETIC,
    is_primitive,
    package,
)
from examples.findbugs.analyses import Analysis
from examples.findbugs.analyses.classes import CLONEABLE
from examples.findbugs.analyses.methods import OBJECT
from examples.findbugs.facts import Invoke, MethodDecl
from examples.findbugs.reader.opcodes import INVOKESPECIAL, INVOKEVIRTUAL
from examples.findbugs.tables import Tables
from reactive import Relation


def boxing(t: Tables) -> Relation[Invoke]:
    """A: a value that is boxed and unboxed immediately."""
    return (
        t.invoke.join(
            t.invoke,
            on=lambda s, v: (
                s.opcode == INVOKESPECIAL
                and len(s.params) == 1
                and is_primitive(s.params[0])
                and s.receiver is not None
                and package(s.receiver) == "java/lang"
                and v.opcode == INVOKEVIRTUAL
                and not v.params
                and v.name.endswith("Value")
                and s.cls == v.cls
                and s.method == v.method
                and s.receiver == v.receiver
                and s.next_pc == v.pc
                and s.params[0] != v.ret
            ),
        )
        .join(t.class_decl, on=lambda s, v, c: s.cls == c.name and c.major >= 49)
        .select(lambda s, v, c: v)
    )


def idiom(t: Tables) -> Relation[str]:
    """C: a class is Cloneable, and neither has a `clone` nor calls one."""
    return (
        t.class_decl.anti_join(
            t.method_decl,
            on=lambda c, m: (
                c.name == m.cls
                and m.name == "clone"
                and not m.params
                and m.access & PUBLIC != 0
                and m.access & (ABSTRACT | SYNTHETIC) == 0
            ),
        )
        .anti_join(t.invoke, on=lambda c, i: c.name == i.cls and i.name == "clone" and not i.params)
        .where(lambda c: c.access & (INTERFACE | ABSTRACT) == 0 and CLONEABLE in c.interfaces)
        .select(lambda c: c.name)
    )


def no_super_call(t: Tables) -> Relation[MethodDecl]:
    """D: a `clone` does not call that of its superclass."""
    return (
        t.method_decl.join(t.class_decl, on=lambda m, c: m.cls == c.name and c.super is not None)
        .where(
            lambda m, c: (
                m.access & ABSTRACT == 0 and m.name == "clone" and not m.params and m.ret == OBJECT
            )
        )
        .anti_join(
            t.invoke,
            on=lambda m, c, i: (
                i.opcode == INVOKESPECIAL
                and i.name == "clone"
                and not i.params
                and i.ret == OBJECT
                and m.cls == i.cls
                and m.method == i.method
                and c.super == i.receiver
            ),
        )
        .select(lambda m, c: m)
    )


PUBLISHED: dict[str, Analysis] = {"A": boxing, "C": idiom, "D": no_super_call}
"""The published analyses, by letter."""
