"""A process keeps of classes, names and queries that are gone nothing, or a bounded part.

Every cache of a process is weak or bounded. `CONTAINERS` lists the dictionaries, lists and sets of
modules; a new one fails here until it is listed with its reason.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import gc
import importlib
import linecache
import pkgutil
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

import optimizer
import reactive
import spark_backend
from optimizer.kinds.fields import MOST_UNUSED, ClassCache, by_class, class_maker, facts_of
from reactive import Count, Database, tracked
from tests.growth.dropped import KINDS, NAMES, Base, World, named_tuple
from tests.growth.memory import BESIDE, counted_objects, play

ROOT = Path(__file__).parent.parent.parent
PACKAGES = (optimizer, reactive, spark_backend)
MOST = 4_096
"""The largest number of entries that a cache of a process may have."""
ROUNDS = MOST_UNUSED + 12
WEAK, BOUNDED, FIXED = "weak", "bounded", "fixed"
CONTAINERS = {
    "optimizer.rewriting.clashing.REFUSED": WEAK,
    "reactive.engine.codegen.functions._files": WEAK,
    "reactive.engine.codegen.functions._gone": BOUNDED,  # emptied by the next function
    "reactive.engine.collections.zset._ALIVE": WEAK,
    "reactive.engine.collections.zset._KEPT": BOUNDED,  # twice the records that are in use
    "reactive.borders.durable.file_lock._HERE": WEAK,
    "reactive.borders.durable.file_lock._INODES": WEAK,
    "reactive.borders.objects.records.RECORDS": WEAK,
    "reactive.engine.storage.rows.TRACKED_CLASSES": WEAK,
    "reactive.languages.sql.dbapi.connection.OPENED": WEAK,
    "reactive.languages.sql.postgres.moments.UNITS": FIXED,  # filled at import
    "reactive.languages.sql.terms.values._COUNTS": WEAK,
    **dict.fromkeys(
        (
            "optimizer.plans.forms.NOTHING",
            "reactive.languages.sql.postgres.grammar.Tokenizer.HEREDOC_STRINGS",
            "reactive.languages.sql.text.grammar.Tokenizer.HEREDOC_STRINGS",
            "reactive.datalog.__path__",
            "reactive.sql.__path__",
            "reactive.engine.collections.reachability.EMPTY",
            "reactive.borders.objects.changes.NO_CHANGES",
            "reactive.engine.reference.changes.NONE",
            "reactive.borders.sources.net_changes.NOTHING",
            "reactive.engine.transactions.pending.NOTHING",
            "spark_backend.direct.flush.NOTHING",
        ),
        FIXED,  # always empty
    ),
}
"""Containers that modules begin empty, or that weak references fill."""


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_classes_of_rows_go_when_they_are_dropped(name: str) -> None:
    world, make = World(), KINDS[name]
    made = [weakref.ref(make(world, number)) for number in range(ROUNDS)]
    gc.collect()
    alive = sum(each() is not None for each in made)
    assert alive <= MOST_UNUSED + 2, f"{alive} of {ROUNDS}"


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_names_alone_leave_nothing_behind(name: str) -> None:
    """Check that two of four rounds of thirty names add no object: each name would leak.

    The other rounds may fill caches, or change objects that earlier tests have left.
    """
    world, make = World(), NAMES[name]
    for number in range(ROUNDS):
        make(world, number)
    counts = [counted_objects()]
    for first in range(ROUNDS, ROUNDS + 120, 30):
        for number in range(first, first + 30):
            make(world, number)
        counts.append(counted_objects())
    grown = [after - before for before, after in pairwise(counts)]
    assert sorted(grown)[1] <= 0, grown


@pytest.mark.long
@pytest.mark.parametrize("name", BESIDE)
def test_a_service_ends_with_the_objects_it_began_with(name: str) -> None:
    world, use = World(), BESIDE[name]
    play(world, [use], range(ROUNDS), commits=4)
    before = counted_objects()
    play(world, [use], range(ROUNDS, ROUNDS + 24), commits=4)
    assert counted_objects() - before < 24


def modules() -> Iterator[Any]:
    """The modules of the packages that can be imported here."""
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.rpartition(".")[2] == "__main__":
                continue
            try:
                yield importlib.import_module(found.name)
            except ImportError:  # an optional library
                continue


def test_each_cached_function_is_bounded() -> None:
    found = {
        f"{name}.{key}": value.cache_parameters()["maxsize"]
        for module in modules()
        for name, holder in [(module.__name__, vars(module)), *classes_of(module)]
        for key, value in holder.items()
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__ == module.__name__
    }
    assert len(found) > 30
    wrong = {name: most for name, most in found.items() if most is None or most > MOST}
    assert wrong == {}


def classes_of(module: Any) -> list[tuple[str, Any]]:
    return [
        (f"{module.__name__}.{name}", vars(kind))
        for name, kind in vars(module).items()
        if isinstance(kind, type) and kind.__module__ == module.__name__
    ]


def test_each_container_of_a_module_is_listed() -> None:
    found = {name for path in files() for name in began_empty(path)}
    assert found == CONTAINERS.keys()


def test_a_new_cache_without_a_bound_is_found(tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    path.write_text("_SEEN: dict[str, int] = {}\nclass Reader:\n    known = defaultdict(list)\n")
    assert [name.rpartition("new.")[2] for name in began_empty(path)] == ["_SEEN", "Reader.known"]


def files() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package.__name__).rglob("*.py"))
        if path.name != "__main__.py"
    ]


def began_empty(path: Path) -> Iterator[str]:
    """The names of dictionaries, lists and sets that a module, or a class of it, begins empty."""
    inside = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path(path.name)
    module = ".".join(inside.with_suffix("").parts)
    tree = ast.parse(path.read_text())
    for prefix, body in [("", tree.body), *((f"{c.name}.", c.body) for c in classes(tree))]:
        for node in body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and is_empty(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (f"{module}.{prefix}{ast.unparse(each)}" for each in targets)


def classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


GROW = {
    *("dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"),
    *("WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "SortedDict", "SortedList"),
}


def is_empty(value: ast.expr | None) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=args):
            return name in GROW and (not args or name == "defaultdict")
        case ast.Call(func=ast.Subscript(value=ast.Name(name)), args=[]):
            return name in GROW
    return False


def test_caches_of_classes_are_bounded() -> None:
    found = {
        f"{module.__name__}.{name}": each._most
        for module in modules()
        for name, each in vars(module).items()
        if isinstance(each, ClassCache)
    }
    assert len(found) == 3
    assert max(found.values()) <= MOST


def test_facts_go_with_their_class_though_they_refer_to_it() -> None:
    @by_class
    def itself(kind: Any, *options: Any) -> Any:
        return kind, options

    class Row:
        pass

    assert itself(Row) == (Row, ())
    assert itself(Row, 1) == (Row, (1,))
    assert itself(Row) is itself(Row)
    assert itself(list[int]) is itself(list[int])
    gone = weakref.ref(Row)
    del Row
    gc.collect()
    assert gone() is None


def test_facts_of_a_copy_are_its_own() -> None:
    class Row:
        a: int

    facts_of(Row)
    copied = dataclasses.dataclass(slots=True)(Row)
    assert facts_of(copied) is not facts_of(Row)
    assert facts_of(copied).owner is copied  # type: ignore[union-attr]


def test_a_cache_of_classes_forgets_the_entry_used_longest_ago() -> None:
    cache: ClassCache[list[int]] = ClassCache(lambda _: [], 2)

    class Row:
        pass

    kinds: dict[str, type | None] = {"first": None, "second": Row, "third": Row}
    first = cache.find("first", kinds.__getitem__)
    cache.find("second", kinds.__getitem__)
    assert cache.find("first", kinds.__getitem__) is first
    cache.find("third", kinds.__getitem__)
    assert len(cache) == 2
    assert cache.find("first", kinds.__getitem__) is first
    kinds.clear()
    del Row
    gc.collect()
    assert len(cache) == 1


def test_a_cache_of_classes_tells_keys_of_one_hash_apart() -> None:
    cache: ClassCache[list[Any]] = ClassCache(lambda _: [], 9)

    class Row:
        pass

    kinds: dict[Any, type | None] = {(-1,): Row, (-2,): None, (-1.0, "x"): Row, (-2.0, "x"): Row}
    assert len({*map(hash, kinds)}) == 2
    found = {key: cache.find(key, kinds.__getitem__) for key in kinds}
    assert len({*map(id, found.values())}) == 4
    assert all(cache.find(key, kinds.__getitem__) is each for key, each in found.items())
    kinds = dict.fromkeys(kinds)
    del Row
    gc.collect()
    assert len(cache) == 1
    assert cache.find((-2,), kinds.__getitem__) == []
    cache.clear()
    assert len(cache) == 0 and not cache._without_class


def test_a_generated_class_stays_while_it_is_in_use() -> None:
    def make(name: str) -> type:
        return type(name, (), {})

    made = class_maker(make)
    first = made("First")
    for number in range(2 * MOST_UNUSED):
        made(f"Other{number}")
    assert made("First") is first


@tracked
class Thing:
    id: int
    v: int
    xs: list[int]


def removed_in_a_transaction(db: Database, table: Any, thing: Thing) -> None:
    with db.transaction():
        thing.xs.append(3)
        table.remove(thing)


def taken_back(db: Database, table: Any, thing: Thing) -> None:
    table.remove(thing)
    with pytest.raises(ZeroDivisionError), db.transaction():
        table.add(thing)
        thing.v = 12
        raise ZeroDivisionError


def changed_twice(thing: Thing) -> None:
    thing.v = 9
    thing.xs.append(1)


WAYS: dict[str, Callable[[Database, Any, Thing], object]] = {
    "remove": lambda db, table, thing: table.remove(thing),
    "discard": lambda db, table, thing: table.discard(thing),
    "delete": lambda db, table, thing: table.delete(thing.id),
    "remove_all": lambda db, table, thing: table.remove_all([thing]),
    "replace_all": lambda db, table, thing: table.replace_all([]),
    "replace_where": lambda db, table, thing: table.replace_where(lambda r: r.id >= 0, []),
    "upsert": lambda db, table, thing: table.upsert(Thing(thing.id, 0, [])),
    "update": lambda db, table, thing: table.update(thing, Thing(-1, 0, [])),
    "drop": lambda db, table, thing: db.drop(table),
    "in a transaction": removed_in_a_transaction,
    "taken back": taken_back,
}
CHANGES: dict[str, Callable[[Thing], object]] = {
    "nothing": lambda thing: None,
    "read": lambda thing: setattr(thing, "v", 9),
    "unread": lambda thing: thing.xs.append(1),
    "both": changed_twice,
}


@pytest.mark.long
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", WAYS)
def test_a_tracked_object_goes_when_it_is_removed(way: str, change: str, is_read: bool) -> None:
    db = Database()
    table: Any = db.table(Thing, key="id", name="things")
    view = table.group_by("v").aggregate(Count()).materialize() if is_read else None
    thing = Thing(1, 1, [])
    table.add(thing)
    CHANGES[change](thing)
    if view is not None and way == "drop":
        view.close()  # it shows the row, which knows its object
    WAYS[way](db, table, thing)
    gone = weakref.ref(thing)
    del thing
    db.table(Base, name="other").add(Base(1, 2))  # the last commit may be looked at
    gc.collect()
    assert gone() is None, view


def test_text_of_a_function_that_is_gone_is_given_up() -> None:
    before = set(linecache.cache)
    world = World()
    for number in range(3):
        named_tuple(world, number)
    gc.collect()
    new = [(file, linecache.cache[file]) for file in linecache.cache.keys() - before]
    texts = {file for file, entry in new if file.startswith("<reactive") and entry[2:3] != ([],)}
    alive = {
        each.__code__.co_filename
        for each in gc.get_objects()
        if type(each) is type(named_tuple) and each.__code__.co_filename.startswith("<reactive")
    }
    assert texts <= alive


def test_records_with_a_nan_are_kept_while_they_are_in_use() -> None:
    @attrs.frozen(weakref_slot=False)  # it compares its fields one by one
    class Row:
        a: int
        b: float

    from reactive.engine.collections import zset

    nan = float("nan")
    first = zset.canonical(Row(-1, nan))
    for number in range(1_000):
        zset.canonical(Row(number, nan))
    assert zset.canonical(Row(-1, nan)) is first
    assert len(zset._KEPT) <= 2 * zset.FEWEST_KEPT
