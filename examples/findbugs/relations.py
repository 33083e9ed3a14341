"""Queries of the facts that several analyses share, and that yours can use.

These functions return queries. Equal queries are one operator in the database, for all analyses:
there is one `subtype`.
"""

from __future__ import annotations

from typing import NamedTuple

from examples.findbugs.facts import INSTRUCTIONS, Insn, MethodDecl
from examples.findbugs.tables import Tables
from reactive import Relation, fixpoint


class Inherits(NamedTuple):
    """A class or interface has another above it."""

    sub: str
    sup: str


def class_inh(t: Tables) -> Relation[Inherits]:
    """Each class with its superclass."""
    return t.class_decl.where(lambda c: c.super is not None).select(
        lambda c: Inherits(c.name, c.super)  # type: ignore[arg-type]
    )


def iface_inh(t: Tables) -> Relation[Inherits]:
    """Each class or interface with each of the interfaces that it lists itself."""
    return t.class_decl.unnest(lambda c: c.interfaces).select(lambda c, i: Inherits(c.name, i))


def inh(t: Tables) -> Relation[Inherits]:
    """Return each class or interface with the classes directly above it."""
    return class_inh(t).union_all(iface_inh(t))


def subtype(t: Tables) -> Relation[Inherits]:
    """Return each class or interface with all classes above it: the transitive closure of `inh`.

    It goes up one class after another, so that a query for one `sup` alone need not compute the
    rest.
    """
    direct = inh(t)
    return fixpoint(
        lambda subtype: direct.union(
            direct.join(subtype, on=lambda a, b: a.sup == b.sub).select(
                lambda a, b: Inherits(a.sub, b.sup)
            )
        )
    )


def constructors(t: Tables) -> Relation[MethodDecl]:
    """All constructors."""
    return t.method_decl.where(lambda m: m.name == "<init>")


def insn(t: Tables) -> Relation[Insn]:
    """All instructions, each as the row of its own table."""
    all_of_them: Relation[Insn] = t.basic
    for kind in INSTRUCTIONS[:-1]:
        all_of_them = all_of_them.union_all(t.of(kind))
    return all_of_them
