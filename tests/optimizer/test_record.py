"""A record equals the class that the standard decorator makes, and is made without it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from optimizer.record import record

Decorator = Callable[[type], type]
standard: Decorator = dataclass(frozen=True, slots=True)


def classes(made: Decorator) -> dict[str, Any]:
    """Classes of all kinds that are in use, by one decorator."""

    class Pair:
        left: int
        right: str = "x"
        lists: ClassVar[list[int]] = []

        def swapped(self) -> tuple[str, int]:
            return self.right, self.left

    class Empty:
        """A class without fields."""

    class Noted:
        of: int
        note: Any = field(compare=False, repr=False)
        known: dict[str, int] = field(default_factory=dict, init=False, compare=False)
        given: list[int] = field(default_factory=list)

    class Twice:
        one: int
        double: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", 2 * self.one)

    class Own:
        one: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

        def __repr__(self) -> str:
            return "own"

    pair = made(Pair)
    below = type("Below", (pair,), {"__annotations__": {"third": "int"}, "third": 3})
    all_of_them = (pair, *map(made, (Empty, Noted, Twice, Own, below)))
    return {each.__name__: each for each in all_of_them}


OURS, THEIRS = classes(record), classes(standard)
GIVEN: dict[str, list[tuple[Any, ...]]] = {
    "Pair": [(1,), (1, "x"), (2, "y"), (), (1, 2, 3)],
    "Empty": [(), (1,)],
    "Noted": [(1, 2), (1, 3), (2, 2, (4,)), (1,)],
    "Twice": [(1,), (2,), ()],
    "Own": [(1,), (2,)],
    "Below": [(1,), (1, "x", 3), (1, "y", 4), ()],
}


def outcome(do: Callable[..., Any], *given: Any) -> Any:
    """Return the result of a call, or the class of its exception."""
    try:
        return do(*given)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", GIVEN)
def test_records_are_made_shown_and_compared_as_dataclasses(name: str) -> None:
    seen = []
    for kind in (OURS[name], THEIRS[name]):
        made = [outcome(kind, *given) for given in GIVEN[name]]
        there = [each for each in made if isinstance(each, kind)]
        seen.append(
            (
                [repr(each) for each in made],
                [[one == other for other in there] for one in there],
                [outcome(hash, one) for one in there],
                [(each.name, each.init, each.repr, each.compare) for each in fields(kind)],
                (kind.__match_args__, kind.__slots__, kind.__qualname__, is_dataclass(kind)),
                kind.__dataclass_params__.frozen,
            )
        )
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", [OURS["Pair"], OURS["Below"]])
def test_a_record_does_not_change(kind: Any) -> None:
    one = kind(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'left'"):
        one.left = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'left'"):
        del one.left
    with pytest.raises((FrozenInstanceError, AttributeError)):
        one.more = 2
    assert not hasattr(one, "__dict__")


def test_a_record_is_replaced_copied_and_matched_as_a_dataclass() -> None:
    one = OURS["Noted"](1, 2, [3])
    assert replace(one, of=5) == OURS["Noted"](5, 2, [3])
    assert copy.deepcopy(one) == one
    assert OURS["Pair"](1).swapped() == ("x", 1)
    match OURS["Pair"](1, "y"):
        case OURS_PAIR if OURS_PAIR.left == 1:
            assert OURS_PAIR.right == "y"


@record
class Kept:
    """One that can be found again by its name."""

    one: int
    two: tuple[int, ...] = ()


def test_a_record_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))


def test_dataclasses_inherit_from_records_and_records_from_dataclasses() -> None:
    @dataclass(frozen=True, slots=True)
    class Dataclass(Kept):
        three: int = 3

    @record
    class Record(Dataclass):
        four: int = 4

    assert repr(Dataclass(1)).endswith("Dataclass(one=1, two=(), three=3)")
    assert [each.name for each in fields(Record)] == ["one", "two", "three", "four"]
    assert Record(1, four=5) == replace(Record(1), four=5)
    assert Kept(1) != Dataclass(1)


def test_an_import_compiles_few_classes_and_imports_no_module_that_is_seldom_needed() -> None:
    program = (
        "import dataclasses, sys\n"
        "of = getattr(dataclasses, '_FuncBuilder', dataclasses)  # since Python 3.13\n"
        "name = '_create_fn' if of is dataclasses else 'add_fn'\n"
        "made, before = [], getattr(of, name)\n"
        "setattr(of, name, lambda *a, **n: made.append(1) or before(*a, **n))\n"
        "import reactive\n"
        "seldom = {'asyncio', 'uuid', 'zoneinfo', 'concurrent.futures.thread', 'rich'}\n"
        "print(len(made), sorted(seldom & sys.modules.keys()))"
    )
    made, _, seldom = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.partition(" ")
    assert (int(made) < 200, seldom.strip()) == (True, "[]")
