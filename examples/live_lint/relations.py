"""Queries that several checks share: meanings of names, importable modules, inheritance.

These functions return queries. Equal queries are one operator in the database, for all checks. A
`distinct` at the end stops a change of a line number alone before the joins above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from examples.live_lint.facts import Base, Binding, Call, Dotted, Function, Import, Module
from examples.live_lint.tables import Tables
from reactive import Count, Min, Relation


@dataclass(frozen=True, slots=True)
class Inherits:
    """A class has a base class that is among the analysed files."""

    symbol: str
    base: str


@dataclass(frozen=True, slots=True)
class Overrides:
    """A method overrides a method of a direct base class."""

    symbol: str
    base: str


@dataclass(frozen=True, slots=True)
class Contract:
    """A function as its callers see it."""

    symbol: str
    module: str
    required: int
    positional: int


def module_and_name(row: Any) -> tuple[str, str]:
    """Return the key of a name in a module."""
    return row.module, row.name


def symbol(row: Any) -> str:
    """Return the key of a definition."""
    found: str = row.symbol
    return found


def meanings(t: Tables) -> Relation[Binding]:
    """Return the names of modules that have only one meaning, and the meaning."""
    counted = t.bindings.distinct().group_by(module_and_name)
    return (
        counted.aggregate(Count(), Min(meaning))
        .where(lambda key, count, full: count == 1)
        .select(lambda key, count, full: Binding(*key, full))  # type: ignore[call-arg]
    )


def importable(t: Tables) -> Relation[str]:
    """Return the full names of analysed modules, and of the folders that they are in."""
    return t.modules.select_many(lambda m: prefixes(m.name)).distinct()


def references(t: Tables) -> Relation[str]:
    """Return the full names that modules take from other modules, by import or by attribute."""
    imported = t.imports.select(lambda i: Binding(i.module, i.bound, i.means)).distinct()
    read = t.dotted.join(imported, left_key=head_in_module, right_key=module_and_name)
    attributes = read.select_many(lambda d, b: prefixes(full_name(b, d)))
    return t.imports.select(lambda i: i.full).union(attributes)


def inherits(t: Tables) -> Relation[Inherits]:
    """Classes with their direct bases; a base may be imported from where it is imported."""
    named = t.bases.join(meanings(t), left_key=head_in_module, right_key=module_and_name)
    found = named.select(lambda base, b: Inherits(base.symbol, full_name(b, base)))
    ends = found.join(meanings(t), left_key=lambda i: i.base, right_key=full_symbol)
    return ends.select(lambda i, b: Inherits(i.symbol, b.full)).distinct()


def methods(t: Tables) -> Relation[Contract]:
    """Return methods whose signature determines the arguments of a call."""
    counted = t.functions.where(lambda f: f.kind == "method" and f.plain and not f.open)
    return counted.select(contract).distinct()


def functions(t: Tables) -> Relation[Contract]:
    """Return functions of modules whose signature determines the arguments of a call."""
    certain = t.functions.where(
        lambda f: f.kind == "function" and f.plain and not f.open and not f.conditional
    )
    return certain.select(contract).distinct()


def overrides(t: Tables) -> Relation[Overrides]:
    """Methods with the method of a base class that they override."""
    names = t.functions.where(lambda f: f.kind == "method").select(owner_and_name).distinct()
    inherited = names.join(
        inherits(t), left_key=lambda name: name[0], right_key=lambda i: i.symbol
    ).select(lambda name, i: Overrides(f"{name[0]}.{name[1]}", f"{i.base}.{name[1]}"))
    return inherited.semi_join(
        names, left_key=lambda o: o.base, right_key=lambda name: f"{name[0]}.{name[1]}"
    ).distinct()


def meaning(row: Binding) -> str:
    """Return the meaning of a name."""
    return row.full


def head_in_module(row: Base | Call | Dotted) -> tuple[str, str]:
    """Return the key of the name that a dotted name begins with."""
    return row.module, row.head


def full_symbol(row: Binding) -> str:
    """Return the full name of a name in a module."""
    return f"{row.module}.{row.name}"


def full_name(binding: Binding, row: Base | Call | Dotted) -> str:
    """Return the meaning of a dotted name, if its head has the meaning of the binding."""
    return f"{binding.full}.{row.rest}" if row.rest else binding.full


def module_name(row: Module) -> str:
    """Return the key of a module."""
    return row.name


def contract(function: Function) -> Contract:
    """Return the part of a function that matters to its callers."""
    return Contract(function.symbol, function.module, function.required, function.positional)


def owner_and_name(row: Function) -> tuple[str, str]:
    """Return a method without its line."""
    return row.owner, row.name


def prefixes(name: str) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def bound_in_module(row: Import) -> tuple[str, str]:
    """Return the key of the name that an import binds."""
    return row.module, row.bound


def file_and_line(row: Any) -> tuple[str, int]:
    """Return the key of a line of code."""
    return row.file, row.line


def arity(function: Contract) -> str:
    """Return the number of arguments of a function, in words."""
    least, most = function.required, max(function.required, function.positional)
    number = str(least) if least == most else f"{least} to {most}"
    return f"{number} argument" + "s" * (number != "1")
