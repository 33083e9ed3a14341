"""Equal changes of one class, with few and with many other classes loaded.

The classes are those of Hibernate's last revision, repeated under other names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from random import Random
from time import process_time
from typing import Any, TypeAlias

from asv_benchmarks.findbugs.replays import changes_of
from asv_benchmarks.measure import SEED
from examples.collector import without_collector
from examples.findbugs.difference import Difference, difference
from examples.findbugs.facts import ClassDecl, Fact, Facts, FieldAccess, Invoke
from examples.findbugs.program import Program
from examples.findbugs.replay.mirror import Mirror

SIZES = (1_000, 10_000)
EDITED = 50
"""Classes that are changed, one after another."""
CHUNK = 10
METHOD, HEADER, CLASS = "a method", "a header", "a class"

Classes: TypeAlias = dict[str, Facts]
Edits: TypeAlias = dict[str, list[Difference]]
Times: TypeAlias = dict[str, dict[str, list[float]]]
"""Kind of edit -> how many classes there are -> seconds of each edit and of taking it back."""


def base_figures(sizes: Sequence[int] = SIZES, edited: int = EDITED) -> Times:
    """All edits, on programs of these sizes in turns, so that noise hits all."""
    classes = dict(islice(copies(last_classes("hibernate")), max(sizes)))
    edits = edits_of({name: classes[name] for name in [*classes][: min(sizes)]}, edited)
    with without_collector():
        programs = {str(size): _loaded(dict(islice(classes.items(), size))) for size in sizes}
        return {kind: _timed(programs, ones) for kind, ones in edits.items()}


def last_classes(name: str) -> Classes:
    """Return the classes of a history's last revision, each with its facts."""
    mirror = Mirror()
    for change in changes_of(name):
        mirror.apply(change.difference)
    found: dict[str, dict[type[Fact], list[Any]]] = {}
    for kind, rows in mirror.facts.items():
        for row in rows:
            found.setdefault(row.name if kind is ClassDecl else row.cls, {}).setdefault(
                kind, []
            ).append(row)
    return dict(sorted(found.items()))


def copies(classes: Mapping[str, Facts]) -> Iterator[tuple[str, Facts]]:
    """Yield the classes, and then again and again under other names, which refer to each other."""
    yield from classes.items()
    for number in count(1):
        names = {name: f"copy{number}/{name}" for name in classes}
        for name, facts in classes.items():
            yield (
                names[name],
                {kind: [_renamed(row, names) for row in rows] for kind, rows in facts.items()},
            )


def edits_of(classes: Mapping[str, Facts], edited: int) -> Edits:
    """Edits of each kind, of some of the classes that have calls."""
    able = [name for name, facts in classes.items() if Invoke in facts and ClassDecl in facts]
    chosen = Random(SEED).sample(able, min(edited, len(able)))
    made: Edits = {METHOD: [], HEADER: [], CLASS: []}
    for name in chosen:
        old = classes[name]
        for kind, new in ((METHOD, _longer(old)), (HEADER, _serializable(old)), (CLASS, {})):
            made[kind].append(difference({name: old}, {name: new}))
    return made


def _renamed(row: Any, names: Mapping[str, str]) -> Any:
    return type(row)(*(_value(value, names) for value in row))


def _value(value: Any, names: Mapping[str, str]) -> Any:
    if type(value) is tuple:
        return tuple(names.get(part, part) for part in value)
    return names.get(value, value) if type(value) is str else value


def _longer(facts: Facts) -> Facts:
    """The method with the first call is longer at its beginning, so all its calls move."""
    first: Any = facts[Invoke][0]
    moved: dict[type[Fact], list[Any]] = {kind: [] for kind in (Invoke, FieldAccess)}
    for kind, rows in moved.items():
        of_kind: Sequence[Any] = facts.get(kind, ())
        rows += [_moved(row) if row.method == first.method else row for row in of_kind]
    return {**facts, **moved}


def _moved(row: Any) -> Any:
    return row._replace(pc=row.pc + 3, next_pc=row.next_pc + 3)


def _serializable(facts: Facts) -> Facts:
    """The class lists another interface, or one less."""
    [row] = facts[ClassDecl]
    assert isinstance(row, ClassDecl)
    listed = "java/io/Serializable"
    others = tuple(name for name in row.interfaces if name != listed)
    interfaces = others if listed in row.interfaces else (*others, listed)
    return {**facts, ClassDecl: [row._replace(interfaces=interfaces)]}


def _loaded(classes: Mapping[str, Facts]) -> Program:
    program = Program()
    program.apply(difference({}, classes))
    return program


def _timed(programs: Mapping[str, Program], edits: Sequence[Difference]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {size: [] for size in programs}
    for start in range(0, len(edits), CHUNK):
        chunk = edits[start : start + CHUNK]
        for size, program in programs.items():
            _seconds(program, chunk[:1])
            times[size] += _seconds(program, chunk)
    return times


def _seconds(program: Program, edits: Iterable[Difference]) -> list[float]:
    seconds = []
    for edit in edits:
        for step in (edit, Difference(edit.added, edit.removed)):
            start = process_time()
            program.apply(step)
            seconds.append(process_time() - start)
    return seconds
