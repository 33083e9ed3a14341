"""Checks of imports and exports: what modules take from each other."""

from __future__ import annotations

from examples.live_lint import relations as r
from examples.live_lint.facts import Import
from examples.live_lint.finding import Finding
from examples.live_lint.reachability import Path, Site, both, leading_back, sites, ways_back
from examples.live_lint.tables import Tables
from reactive import Relation


def unused_import(t: Tables) -> Relation[Finding]:
    """An imported name that its module never reads, and that no other module takes from it."""
    return (
        t.imports.where(lambda i: not i.kept and not i.optional and i.bound not in ("*", "_"))
        .anti_join(t.name_uses, left_key=r.bound_in_module, right_key=r.module_and_name)
        .anti_join(t.exports, left_key=r.bound_in_module, right_key=r.module_and_name)
        .anti_join(
            r.references(t), left_key=lambda i: f"{i.module}.{i.bound}", right_key=lambda full: full
        )
        .select(
            lambda i: Finding(i.file, i.line, "unused-import", f"{i.bound} is imported, not used")
        )
    )


def undefined_export(t: Tables) -> Relation[Finding]:
    """A name in `__all__` that the module does not define."""
    return (
        t.exports.anti_join(t.bindings, left_key=r.module_and_name, right_key=r.module_and_name)
        .anti_join(t.modules, left_key=lambda e: f"{e.module}.{e.name}", right_key=r.module_name)
        .anti_join(t.dynamic, left_key=lambda e: e.module, right_key=lambda d: d.module)
        .select(
            lambda e: Finding(
                e.file, e.line, "undefined-export", f"{e.name} is in __all__, but not defined"
            )
        )
    )


def missing_module(t: Tables) -> Relation[Finding]:
    """An import of a module that is neither analysed, nor beside the file, nor known elsewhere."""
    elsewhere = t.known.anti_join(
        r.importable(t), left_key=lambda k: k.name, right_key=lambda name: name
    )
    return (
        t.imports.where(lambda i: not i.optional)
        .anti_join(r.importable(t), left_key=lambda i: i.target, right_key=lambda name: name)
        .anti_join(r.importable(t), left_key=beside, right_key=lambda name: name)
        .anti_join(t.known, left_key=lambda i: i.full, right_key=lambda k: k.name)
        .anti_join(t.known, left_key=lambda i: i.target, right_key=lambda k: k.name)
        .anti_join(
            elsewhere, left_key=lambda i: i.target.partition(".")[0], right_key=lambda k: k.name
        )
        .select(
            lambda i: Finding(i.file, i.line, "missing-module", f"there is no module {i.target}")
        )
    )


def missing_name(t: Tables) -> Relation[Finding]:
    """A name imported from an analysed module that does not have it."""
    return (
        t.imports.where(lambda i: not i.optional and i.full != i.target and is_ordinary(i.full))
        .semi_join(t.modules, left_key=lambda i: i.target, right_key=r.module_name)
        .anti_join(t.bindings, left_key=lambda i: i.full, right_key=r.full_symbol)
        .anti_join(r.importable(t), left_key=lambda i: i.full, right_key=lambda name: name)
        .anti_join(t.known, left_key=lambda i: i.full, right_key=lambda k: k.name)
        .anti_join(t.dynamic, left_key=lambda i: i.target, right_key=lambda d: d.module)
        .select(
            lambda i: Finding(
                i.file,
                i.line,
                "missing-name",
                f"{i.target} has no name {i.full.rpartition('.')[2]}",
            )
        )
    )


def import_cycle(t: Tables) -> Relation[Finding]:
    """An import that, while the module is loaded, leads back to it through any number of others."""
    short = sites(t).join(ways_back(t), left_key=both, right_key=last_and_first)
    long = (
        sites(t)
        .semi_join(leading_back(t), left_key=both, right_key=both)
        .anti_join(ways_back(t), left_key=both, right_key=last_and_first)
    )
    return short.select(lambda s, p: in_circle(s, p.modules)).union_all(
        long.select(lambda s: in_circle(s, (s.target, "...", s.module)))
    )


def in_circle(at: Site, back: tuple[str, ...]) -> Finding:
    """An import, and the way back from what it imports."""
    circle = " -> ".join((at.module, *back))
    return Finding(at.file, at.line, "import-cycle", f"a circle of imports: {circle}")


def last_and_first(way: Path) -> tuple[str, str]:
    """The ends of a way back, as those of the import that it leads back to."""
    return way.modules[-1], way.modules[0]


def beside(row: Import) -> str:
    """What an import means for a script, which can import the files beside it."""
    return f"{row.module.rpartition('.')[0]}.{row.target}"


def is_ordinary(full: str) -> bool:
    """Whether the last part of a name is neither a star nor one that every module has."""
    name = full.rpartition(".")[2]
    return name != "*" and not (name.startswith("__") and name.endswith("__"))
