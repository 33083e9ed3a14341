"""Analyses of fields: each gives rows of `field_decl`."""

from __future__ import annotations

from examples.findbugs.access import (
    FINAL,
    INTERFACE,
    PROTECTED,
    PUBLIC,
    STATIC,
    SYNTHETIC,
    VOLATILE,
    is_array_or_hashtable,
    package,
)
from examples.findbugs.facts import FieldAccess, FieldDecl
from examples.findbugs.keys import of_class, of_name
from examples.findbugs.reader.opcodes import GETFIELD, GETSTATIC
from examples.findbugs.tables import Tables
from reactive import Relation


def ci_confused_inheritance(t: Tables) -> Relation[FieldDecl]:
    """A field is protected although no class can inherit it, since its class is final."""
    return t.field_decl.where(lambda f: f.access & PROTECTED != 0).semi_join(
        t.class_decl.where(lambda c: c.access & FINAL != 0), left_key=of_class, right_key=of_name
    )


def ms_pkgprotect(t: Tables) -> Relation[FieldDecl]:
    """A static array or table that all can change is read in its own package only."""
    return (
        open_static_fields(t)
        .where(lambda f: f.access & FINAL != 0 and is_array_or_hashtable(f.type))
        .anti_join(
            foreign_reads(t),
            on=lambda f, r: f.cls == r.owner and f.name == r.name and f.type == r.type,
        )
    )


def ms_should_be_final(t: Tables) -> Relation[FieldDecl]:
    """A static field that all can set is not final."""
    return open_static_fields(t).where(
        lambda f: f.access & FINAL == 0 and not is_array_or_hashtable(f.type)
    )


def open_static_fields(t: Tables) -> Relation[FieldDecl]:
    """The static fields of classes that others can reach."""
    return t.field_decl.where(
        lambda f: (
            f.access & STATIC != 0
            and f.access & (SYNTHETIC | VOLATILE) == 0
            and f.access & (PUBLIC | PROTECTED) != 0
        )
    ).semi_join(
        t.class_decl.where(lambda c: c.access & INTERFACE == 0),
        left_key=of_class,
        right_key=of_name,
    )


def foreign_reads(t: Tables) -> Relation[FieldAccess]:
    """Reads of fields of other packages."""
    return t.field_access.where(
        lambda a: a.opcode in (GETSTATIC, GETFIELD) and package(a.cls) != package(a.owner)
    )
