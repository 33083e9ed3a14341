"""Reachability: imports in circles, and code that can be run.

    imports of modules --trim--> core --reach--> imports in circles --shortest--> paths
    entry points --use--> internal definitions --use--> internal definitions ...

Each arrow with a name is a recursion (`fixpoint`, or `iterate` for a few rounds of trimming), and
consecutive ones are strata: each reads the complete result of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

from examples.live_lint.facts import Import, Internal, PrivateUse
from examples.live_lint.relations import module_and_name, module_name
from examples.live_lint.tables import Tables
from reactive import Min, Relation, fixpoint, iterate

TRIMS = 6
"""Rounds of taking away modules that nothing imports, or that import nothing: no circle has them.
More rounds leave fewer pairs to reach each other, and cost more themselves."""
LONGEST = 10
"""Modules in a circle that is spelt out."""


@dataclass(frozen=True, slots=True)
class Site:
    """A module imports another one while it is loaded, at a line."""

    module: str
    target: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Loads:
    """Loading a module loads another one."""

    module: str
    target: str


@dataclass(frozen=True, slots=True)
class Path:
    """Modules, each of which loads the next one."""

    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """A user and an internal definition that may run if the user runs."""

    user: str
    symbol: str


def sites(t: Tables) -> Relation[Site]:
    """Return the imports of other analysed modules that loading a module executes."""
    early = t.imports.where(lambda i: not i.deferred)
    whole = early.semi_join(t.modules, left_key=lambda i: i.full, right_key=module_name)
    names = early.anti_join(t.modules, left_key=lambda i: i.full, right_key=module_name).semi_join(
        t.modules, left_key=lambda i: i.target, right_key=module_name
    )
    found = whole.select(lambda i: site(i, i.full)).union_all(
        names.select(lambda i: site(i, i.target))
    )
    return found.where(lambda s: s.module != s.target)


def leading_back(t: Tables) -> Relation[Loads]:
    """Return the imports that are in a circle."""
    loads = sites(t).select(lambda s: Loads(s.module, s.target)).distinct()
    core = iterate(trimmed, loads, times=TRIMS)
    return core.semi_join(
        reach(core), left_key=both, right_key=lambda way: (way.target, way.module)
    )


def trimmed(loads: Relation[Loads]) -> Relation[Loads]:
    """Return the imports with one before and one after them."""
    followed = loads.semi_join(loads, left_key=target, right_key=module)
    return followed.semi_join(loads, left_key=module, right_key=target)


def reach(loads: Relation[Loads]) -> Relation[Loads]:
    """Return the modules that each module loads, itself or through others."""
    return fixpoint(
        lambda way: loads.union(
            way.join(loads, left_key=target, right_key=module).select(
                lambda way, step: Loads(way.module, step.target)
            )
        )
    )


def ways_back(t: Tables) -> Relation[Path]:
    """From each module to each that it is in a circle with, the shortest way, if not too long.

    Of several, it is the first one by name.
    """
    back = leading_back(t)
    steps = back.select(lambda step: Path((step.module, step.target)))
    return fixpoint(
        lambda path: steps.union(
            path.where(lambda path: len(path.modules) < LONGEST)
            .join(back, left_key=lambda path: path.modules[-1], right_key=module)
            .where(lambda path, step: step.target != path.modules[0])
            .select(lambda path, step: Path((*path.modules, step.target)))
        ),
        keep=Min(lambda path: (len(path.modules), path.modules)),
        by=lambda path: (path.modules[0], path.modules[-1]),
    )


def running(t: Tables) -> Relation[str]:
    """The symbols of the internal definitions that something runs, beginning at entry points.

    An entry point is what needs no use inside the project to run: the text of a module, whatever
    has a public name, tests, special methods, and decorated functions.
    """
    entries = needs(t).where(lambda n: n.user == "").select(lambda n: n.symbol)
    inner = needs(t).where(lambda n: n.user != "")
    return fixpoint(
        lambda runs: entries.union(
            runs.join(inner, left_key=lambda symbol: symbol, right_key=lambda n: n.user).select(
                lambda symbol, n: n.symbol
            )
        )
    )


def needs(t: Tables) -> Relation[Needs]:
    """Return the definitions that uses may mean: a name that of its module, an attribute any."""
    names = t.private_uses.where(lambda u: u.bound)
    attributes = t.private_uses.where(lambda u: not u.bound)
    by_name = names.join(t.internals, left_key=module_and_name, right_key=module_and_name)
    by_attribute = attributes.join(
        t.internals, left_key=lambda u: u.name, right_key=lambda i: i.name
    )
    return by_name.select(need).union(by_attribute.select(need))


def site(row: Import, target: str) -> Site:
    """Return the place of an import, and the loaded module."""
    return Site(row.module, target, row.file, row.line)


def both(row: Site | Loads) -> tuple[str, str]:
    """Return the two modules of an import."""
    return row.module, row.target


def module(row: Loads) -> str:
    """Return the module that loads."""
    return row.module


def target(row: Loads) -> str:
    """Return the module that is loaded."""
    return row.target


def need(use: PrivateUse, definition: Internal) -> Needs:
    """Return the possible meaning of a use."""
    return Needs(use.user, definition.symbol)
