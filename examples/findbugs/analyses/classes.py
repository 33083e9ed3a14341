"""Analyses of classes, of their inner classes, and of exceptions that methods catch."""

from __future__ import annotations

from typing import NamedTuple

from examples.findbugs.access import ABSTRACT, INTERFACE, PUBLIC, STATIC, SYNTHETIC
from examples.findbugs.keys import of_class
from examples.findbugs.relations import iface_inh, subtype
from examples.findbugs.tables import Tables
from reactive import Relation

CLONEABLE = "java/lang/Cloneable"
SERIALIZABLE = "java/io/Serializable"


class Method(NamedTuple):
    """The key of a method."""

    cls: str
    method: str


class Nested(NamedTuple):
    """A class is nested in another."""

    inner: str
    outer: str


def cn_idiom(t: Tables) -> Relation[str]:
    """A class is Cloneable, and neither has a `clone` nor calls one."""
    clone = t.method_decl.where(
        lambda m: (
            m.name == "clone"
            and not m.params
            and m.access & PUBLIC != 0
            and m.access & (ABSTRACT | SYNTHETIC) == 0
        )
    )
    call = t.invoke.where(lambda i: i.name == "clone" and not i.params)
    return (
        t.class_decl.where(
            lambda c: c.access & (INTERFACE | ABSTRACT) == 0 and CLONEABLE in c.interfaces
        )
        .select(lambda c: c.name)
        .anti_join(clone, left_key=lambda name: name, right_key=of_class)
        .anti_join(call, left_key=lambda name: name, right_key=of_class)
    )


def imse_dont_catch_imse(t: Tables) -> Relation[Method]:
    """A method catches IllegalMonitorStateException, which only a bug in it can raise."""
    return (
        t.handler.where(lambda h: h.catch_type == "java/lang/IllegalMonitorStateException")
        .select(lambda h: Method(h.cls, h.method))
        .distinct()
    )


def se_bad_field_inner_class(t: Tables) -> Relation[Nested]:
    """A nested class is Serializable and refers to an object around it whose class is not."""
    nested = t.inner_class.where(
        lambda n: n.cls == n.inner and n.outer is not None and n.access & STATIC == 0
    ).select(lambda n: Nested(n.inner, n.outer))  # type: ignore[arg-type]
    listed = iface_inh(t).where(lambda i: i.sup == SERIALIZABLE)
    serializable = subtype(t).where(lambda s: s.sup == SERIALIZABLE)
    return nested.semi_join(listed, on=lambda n, i: n.inner == i.sub).anti_join(
        serializable, on=lambda n, s: n.outer == s.sub
    )
