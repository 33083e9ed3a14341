"""Assignments to objects that are tracked, beside `update` of frozen rows: the same changes.

    python -m asv_benchmarks.tracked

CPU time of the two in turns; medians, in microseconds for each change. The rows for `update` are
made before. The last lines are about attributes that no query reads, strict databases, and
`check_silent` for each object.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import make_dataclass, replace
from statistics import median
from time import process_time
from typing import Any

from reactive import Database, tracked

OBJECTS, TURNS, EACH = 1000, 15, 1000
STRICT_TURNS = 60
TOGETHER = 100
"""Changes of a transaction."""
VALUES: list[tuple[str, type, Callable[[int], Any]]] = [
    ("id", int, lambda n: n),
    ("total", float, float),
    ("name", str, str),
]


def main() -> None:
    for fields in (2, 20):
        for name, make in (("total", lambda n: n + 0.5), ("note", lambda n: "x" * (n % 7))):
            for together in (1, TOGETHER):
                print(told(fields, name, make, together))
    for fields in (0, 20):
        for length in (0, 20_000):
            what = f"strict, {fields} further fields, lists of {length:,}"
            print(f"{what}: {strict(length, fields):.3f}x of an assignment that is not")
    print(f"check_silent: {checked():.2f} us for each object of 20 fields")


def told(fields: int, name: str, make: Callable[[int], Any], together: int) -> str:
    is_read = name == "total"
    frozen, changing = sides(fields, is_read=is_read)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(TURNS):
        numbers = range(turn * EACH, turn * EACH + EACH)
        for side, seconds in zip((frozen, changing), times, strict=True):
            seconds.append(side(name, [make(n) for n in numbers], together))
    update, assigned = (median(each) / EACH * 1e6 for each in times)
    where = "alone" if together == 1 else f"in a transaction of {together}"
    what = f"{fields} fields, {'a view reads it' if is_read else 'no view reads it'}, {where}"
    ratio = assigned / update
    return f"{what}: update {update:.1f} us, assignment {assigned:.1f} us, {ratio:.2f}x"


Turn = Callable[[str, list[Any], int], float]


def sides(fields: int, *, is_read: bool) -> tuple[Turn, Turn]:
    frozen: Any = make_dataclass("Frozen", declared(fields), frozen=True, slots=True)
    changing: Any = tracked(make_dataclass("Changing", declared(fields), eq=False))
    return updating(frozen), assigning(changing)


def declared(fields: int) -> list[tuple[str, Any]]:
    first = [(name, kind) for name, kind, _ in VALUES[: min(fields, 2)]] + [("note", str)]
    return [*first, *((f"f{n}", VALUES[n % 3][1]) for n in range(fields - len(first)))]


def filled(kind: Any, db: Database) -> tuple[Any, list[Any], Any]:
    table = db.table(kind, name="orders", key="id")
    view = table.where(lambda o: o.total > 3).select(lambda o: o.id).materialize()
    names = list(kind.__dataclass_fields__)
    made = [
        kind(n, float(n), "", *[VALUES[i % 3][2](n) for i in range(len(names) - 3)])
        for n in range(OBJECTS)
    ]
    table.add_all(made)
    return table, made, view


def updating(kind: Any) -> Turn:
    db = Database()
    table, rows, view = filled(kind, db)

    def turn(name: str, values: list[Any], together: int) -> float:
        new, last = [], list(rows)
        for n, value in enumerate(values):
            last[n % OBJECTS] = replace(last[n % OBJECTS], **{name: value})
            new.append(last[n % OBJECTS])
        began = process_time()
        for start in range(0, len(new), together):
            with nullcontext() if together == 1 else db.transaction():
                for n in range(start, start + together):
                    table.update(rows[n % OBJECTS], new[n])
                    rows[n % OBJECTS] = new[n]
        assert len(view) <= OBJECTS
        return process_time() - began

    return turn


def assigning(kind: Any) -> Turn:
    db = Database()
    _, objects, view = filled(kind, db)

    def turn(name: str, values: list[Any], together: int) -> float:
        began = process_time()
        for start in range(0, len(values), together):
            with nullcontext() if together == 1 else db.transaction():
                for n in range(start, start + together):
                    setattr(objects[n % OBJECTS], name, values[n])
        assert len(view) <= OBJECTS
        return process_time() - began

    return turn


def strict(length: int, fields: int) -> float:
    """Return the time of assignments in a strict database over that in a plain one.

    The objects have lists of a length. It is the median of turns, which begin with either side.
    """
    sides = [of_listed(length, fields, is_strict=is_strict) for is_strict in (False, True)]
    ratios = []
    for turn in range(STRICT_TURNS):
        found = {n: sides[n]() for n in ((0, 1) if turn % 2 else (1, 0))}
        ratios.append(found[1] / found[0])
    return median(ratios)


def of_listed(length: int, fields: int, *, is_strict: bool) -> Callable[[], float]:
    declared = [("id", int), ("total", float), ("lines", list[int])]
    more = [(f"f{n}", float) for n in range(fields)]
    kind: Any = tracked(make_dataclass("Listed", [*declared, *more], eq=False))
    db = Database(strict=is_strict)
    table = db.table(kind, name="listed", key="id")
    view = table.where(lambda o: o.total > 3).select(lambda o: o.id).materialize()
    objects = [kind(n, 0.0, list(range(length)), *map(float, range(fields))) for n in range(50)]
    table.add_all(objects)

    def turn() -> float:
        began = process_time()
        for n in range(EACH):
            objects[n % len(objects)].total += 1.0
        assert len(view) <= len(objects)
        return process_time() - began

    return turn


def checked() -> float:
    db = Database()
    _, objects, view = filled(tracked(make_dataclass("Changing", declared(20), eq=False)), db)
    began = process_time()
    assert db.check_silent() == []
    assert len(view) < len(objects)
    return (process_time() - began) / len(objects) * 1e6


if __name__ == "__main__":
    main()
