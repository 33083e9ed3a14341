"""Checks of imports and exports: what modules take from each other."""

from __future__ import annotations

from examples.live_lint import relations as r
from examples.live_lint.facts import Import
from examples.live_lint.finding import Finding
from examples.live_lint.reachability import Path, Site, both, leading_back, sites, ways_back
from examples.live_lint.tables import Tables
from reactive import Relation, live


def unused_import(t: Tables) -> Relation[Finding]:
    """An imported name that its module never reads, and that no other module takes from it."""
    taken = r.references(t)
    return live(
        Finding(i.file, i.line, "unused-import", f"{i.bound} is imported, not used")
        for i in t.imports
        if not i.kept and not i.optional and i.bound not in ("*", "_")
        if (i.module, i.bound) not in {(u.module, u.name) for u in t.name_uses}
        if (i.module, i.bound) not in {(e.module, e.name) for e in t.exports}
        if f"{i.module}.{i.bound}" not in taken
    )


def undefined_export(t: Tables) -> Relation[Finding]:
    """A name in `__all__` that the module does not define."""
    return live(
        Finding(e.file, e.line, "undefined-export", f"{e.name} is in __all__, but not defined")
        for e in t.exports
        if (e.module, e.name) not in {(b.module, b.name) for b in t.bindings}
        if f"{e.module}.{e.name}" not in {m.name for m in t.modules}
        if e.module not in {d.module for d in t.dynamic}
    )


def missing_module(t: Tables) -> Relation[Finding]:
    """An import of a module that is neither analysed, nor beside the file, nor known elsewhere."""
    here, known = r.importable(t), live(k.name for k in t.known)
    return live(
        Finding(i.file, i.line, "missing-module", f"there is no module {i.target}")
        for i in t.imports
        if not i.optional
        if i.target not in here and beside(i) not in here
        if i.full not in known and i.target not in known
        if i.target.partition(".")[0] not in {name for name in known if name not in here}
    )


def missing_name(t: Tables) -> Relation[Finding]:
    """A name imported from an analysed module that does not have it."""
    here, known = r.importable(t), live(k.name for k in t.known)
    return live(
        Finding(
            i.file, i.line, "missing-name", f"{i.target} has no name {i.full.rpartition('.')[2]}"
        )
        for i in t.imports
        if not i.optional and i.full != i.target and is_ordinary(i.full)
        if i.target in {m.name for m in t.modules}
        if i.full not in {r.full_symbol(b) for b in t.bindings}
        if i.full not in here and i.full not in known
        if i.target not in {d.module for d in t.dynamic}
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
    """Return the finding of an import, with the path back from the imported module."""
    circle = " -> ".join((at.module, *back))
    return Finding(at.file, at.line, "import-cycle", f"a circle of imports: {circle}")


def last_and_first(way: Path) -> tuple[str, str]:
    """Return the ends of a path back, as those of the import that it returns to."""
    return way.modules[-1], way.modules[0]


def beside(row: Import) -> str:
    """Return the meaning of an import in a script, which can import files of its folder."""
    return f"{row.module.rpartition('.')[0]}.{row.target}"


def is_ordinary(full: str) -> bool:
    """Return True if the last part of a name is neither a star nor a name of every module."""
    name = full.rpartition(".")[2]
    return name != "*" and not (name.startswith("__") and name.endswith("__"))
