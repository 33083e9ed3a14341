"""Random edits of containers within containers, of tracked ones and of plain ones alike."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from reactive.engine.collections.frozen_dict import FrozenDict, FrozenSet
from reactive.engine.collections.long_tuple import FrozenList

Edit = Callable[[Any], Any]


class Refused(Exception):
    """The change is refused."""


class Holder:
    """An object that has containers, as `container.Owner` says."""

    def __init__(self) -> None:
        self.held: dict[Any, Any] = {}
        self.marked: set[Any] = set()
        self.undos: list[Any] = []
        self.calls = 0
        self.refuses = False

    def with_owners(self, found: dict[int, Any]) -> None:
        found[id(self)] = self

    def holds(self, key: Any, value: Any) -> bool:
        return self.held.get(key) is value

    def mark(self, key: Any, value: Any) -> None:
        self.marked.add(key)

    def is_in_transaction(self) -> bool:
        return bool(self.undos)

    @staticmethod
    def change_all(holders: Any, do: Any) -> None:
        undo = do()
        for holder in holders:
            holder.calls += 1
        if undo is None:
            return
        if any(holder.refuses for holder in holders):
            undo()
            raise Refused
        holders[0].undos.append(undo)

    def roll_back(self) -> None:
        while self.undos:
            self.undos.pop()()


def thawed(value: Any) -> Any:
    """A snapshot as plain containers."""
    if isinstance(value, FrozenList):
        return [thawed(each) for each in value]
    if isinstance(value, FrozenDict):
        return {key: thawed(each) for key, each in value.items()}
    return set(value) if isinstance(value, FrozenSet) else value


def plain(value: Any) -> Any:
    """A copy of containers, without any that is tracked."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return set(value) if isinstance(value, set) else value


def in_order(value: Any) -> Any:
    """Return the parts of a container whose order must be equal in two copies of it."""
    if isinstance(value, list):
        return [in_order(each) for each in value]
    if isinstance(value, dict):
        return [(key, in_order(each)) for key, each in value.items()]
    return ("a set", *sorted(value)) if isinstance(value, set) else value


def drawn_value(random: Random, depth: int = 2) -> Any:
    """A number or a container."""
    kind = random.randrange(9) if depth else 0
    size = random.randrange(4)
    if kind == 6:
        return [drawn_value(random, depth - 1) for _ in range(size)]
    if kind == 7:
        return {random.randrange(9): drawn_value(random, depth - 1) for _ in range(size)}
    return {random.randrange(9) for _ in range(size)} if kind == 8 else random.randrange(99)


def drawn_path(random: Random, value: Any) -> list[Any]:
    """Draw the path to one of the containers in a container."""
    path = []
    while random.random() < 0.6:
        if isinstance(value, list):
            inner = [n for n, each in enumerate(value) if isinstance(each, list | dict | set)]
        elif isinstance(value, dict):
            inner = [key for key, each in value.items() if isinstance(each, list | dict | set)]
        else:
            break
        if not inner:
            break
        path.append(random.choice(inner))
        value = value[path[-1]]
    return path


def at(value: Any, path: list[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def drawn_edit(random: Random, value: Any) -> Edit:
    """An edit of a container such as this; it may raise."""
    if isinstance(value, list):
        return _of_list(random, len(value))
    return _of_dict(random) if isinstance(value, dict) else _of_set(random)


def _of_list(random: Random, size: int) -> Edit:
    place = random.randrange(-size - 2, size + 3)
    stop, step = random.randrange(-size - 2, size + 3), random.choice((None, None, 1, 2, -1, -2))
    some = slice(random.choice((None, place)), random.choice((None, stop)), step)
    x = drawn_value(random)
    many = [drawn_value(random) for _ in range(random.choice((0, 1, 2, 9)))]
    exact = [drawn_value(random) for _ in range(len(range(size)[some]))]
    return random.choice(
        [
            *(3 * [lambda v: v.append(x)]),
            *(2 * [lambda v: v.insert(place, x)]),
            *(2 * [lambda v: v.__setitem__(place, x)]),
            lambda v: v.__delitem__(place),
            lambda v: v.pop(place),
            lambda v: v.pop(),
            lambda v: v.remove(x),
            lambda v: v.extend(many),
            lambda v: v.__iadd__(many) and None,
            lambda v: v.__imul__(place % 3 if is_flat(v) else 1) and None,
            lambda v: v.__setitem__(some, many),
            lambda v: v.__setitem__(some, exact),
            lambda v: v.__delitem__(some),
            lambda v: v.sort(key=lambda each: repr(in_order(each)), reverse=place > 0),
            lambda v: v.sort(),
            lambda v: v.reverse(),
            lambda v: v.clear() if place == 0 else None,
            lambda v: v.extend(7),
            lambda v: v.__setitem__("a", 1),
            lambda v: v.__setitem__(slice(0, 1), 5),
            lambda v: v.insert("a", 1),
        ]
    )


def is_flat(value: list[Any]) -> bool:
    """Return True if the list has no container inside; copies of it would share one."""
    return not any(isinstance(each, list | dict | set) for each in value)


def _of_dict(random: Random) -> Edit:
    key, other = random.randrange(12), random.randrange(12)
    x = drawn_value(random)
    many = {random.randrange(12): drawn_value(random) for _ in range(random.choice((0, 1, 4)))}
    return random.choice(
        [
            *(3 * [lambda v: v.__setitem__(key, x)]),
            *(2 * [lambda v: v.__delitem__(key)]),
            lambda v: v.update(many, a=1),
            lambda v: v.update([(key, x), (other, plain(x))]),
            lambda v: v.__ior__(many) and None,
            lambda v: v.setdefault(key, x) and None,
            lambda v: v.pop(key) and None,
            lambda v: v.pop(key, None) and None,
            lambda v: v.popitem() and None,
            lambda v: v.clear() if other == 0 else None,
            lambda v: v.update(7),
            lambda v: v.__setitem__([], 1),
        ]
    )


def _of_set(random: Random) -> Edit:
    x, y = random.randrange(12), random.randrange(12)
    many = {random.randrange(12) for _ in range(random.choice((0, 1, 4)))}
    return random.choice(
        [
            *(2 * [lambda v: v.add(x)]),
            lambda v: v.discard(x),
            lambda v: v.remove(x),
            lambda v: v.update(many, [y]),
            lambda v: v.__ior__(many) and None,
            lambda v: v.__isub__(many) and None,
            lambda v: v.__iand__(many | set(range(9))) and None,
            lambda v: v.__ixor__(many) and None,
            lambda v: v.difference_update(many, [y]),
            lambda v: v.intersection_update(range(9), range(12)),
            lambda v: v.symmetric_difference_update(many),
            lambda v: v.clear() if x == 0 else None,
            lambda v: v.add([]),
            lambda v: v.remove({1}),
            lambda v: v.__ior__(7),
        ]
    )


def outcome(edit: Edit, value: Any) -> Any:
    """Return the result of an edit, or its failure."""
    try:
        return plain(edit(value))
    except Refused:
        raise
    except Exception as error:
        said = str(error).replace("TrackedList", "list").replace("TrackedDict", "dict")
        return type(error), said.replace("TrackedSet", "set")
