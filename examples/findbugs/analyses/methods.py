"""Analyses of methods: each gives rows of `method_decl`, the last one pairs of them."""

from __future__ import annotations

from examples.findbugs.access import (
    ABSTRACT,
    INTERFACE,
    NATIVE,
    PRIVATE,
    PUBLIC,
    STATIC,
    SYNCHRONIZED,
)
from examples.findbugs.facts import MethodDecl
from examples.findbugs.reader.opcodes import INVOKESPECIAL
from examples.findbugs.tables import Tables
from reactive import Relation

OBJECT = "Ljava/lang/Object;"


def cn_idiom_no_super_call(t: Tables) -> Relation[MethodDecl]:
    """A `clone` does not call that of its superclass."""
    super_call = t.invoke.where(
        lambda i: (
            i.name == "clone" and i.opcode == INVOKESPECIAL and not i.params and i.ret == OBJECT
        )
    )
    return (
        t.method_decl.where(
            lambda m: (
                m.name == "clone" and m.access & ABSTRACT == 0 and not m.params and m.ret == OBJECT
            )
        )
        .join(t.class_decl, on=lambda m, c: m.cls == c.name and c.super is not None)
        .anti_join(
            super_call,
            on=lambda m, c, i: m.cls == i.cls and m.method == i.method and c.super == i.receiver,
        )
        .select(lambda m, c: m)
    )


def eq_abstract_self(t: Tables) -> Relation[MethodDecl]:
    """An abstract `equals` takes its own class only, and so does not override that of Object."""
    return t.method_decl.where(
        lambda m: (
            m.name == "equals"
            and m.access & ABSTRACT != 0
            and m.params == (f"L{m.cls};",)
            and m.ret == "Z"
        )
    )


def fi_public_should_be_protected(t: Tables) -> Relation[MethodDecl]:
    """A `finalize` is public."""
    return t.method_decl.where(
        lambda m: m.name == "finalize" and m.access & PUBLIC != 0 and not m.params and m.ret == "V"
    )


def ug_sync_set_unsync_get(t: Tables) -> Relation[MethodDecl, MethodDecl]:
    """A setter is synchronized, and the getter of the same name is not."""
    setters = instance_methods(t).where(
        lambda m: (
            m.name.startswith("set")
            and m.access & SYNCHRONIZED != 0
            and len(m.params) == 1
            and m.ret == "V"
        )
    )
    getters = instance_methods(t).where(
        lambda m: (
            m.name.startswith("get")
            and m.access & SYNCHRONIZED == 0
            and not m.params
            and m.ret != "V"
        )
    )
    classes = t.class_decl.where(lambda c: c.access & INTERFACE == 0)
    return setters.join(
        getters, on=lambda s, g: s.cls == g.cls and s.name[3:] == g.name[3:]
    ).semi_join(classes, on=lambda s, g, c: s.cls == c.name)


def instance_methods(t: Tables) -> Relation[MethodDecl]:
    """Methods that have a body, an object, and callers elsewhere."""
    return t.method_decl.where(lambda m: m.access & (ABSTRACT | STATIC | NATIVE | PRIVATE) == 0)
