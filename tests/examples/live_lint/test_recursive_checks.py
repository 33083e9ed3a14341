"""The recursive checks against plain loops over the same facts, after every edit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import pytest

from examples.live_lint.edits import edits
from examples.live_lint.facts import Fact
from examples.live_lint.project import Project
from examples.live_lint.reachability import LONGEST

from . import plain
from .linting import edit, found, made
from .test_updates import small_package

MODULES = ("a", "b", "c", "d", "e", "f")
PRIVATE = ("_f", "_g", "_h", "_C", "_D")


def facts(project: Project) -> list[Fact]:
    return [fact for file in project.files for fact in project.facts(file)]


def check(project: Project) -> None:
    """Check that both views equal the plain loops."""
    cycles = {(f.file, f.line, f.message) for f in project.views["import-cycle"]}
    assert cycles == plain.import_cycles(facts(project))
    unreachable = {(f.file, f.line) for f in project.views["unreachable-definition"]}
    assert unreachable == plain.unreachable(facts(project))


def module(rng: random.Random) -> str:
    """A module that imports some others, and uses private names in all kinds of places."""
    lines = [_import(rng) for _ in range(rng.randrange(3))]
    for name in rng.sample(PRIVATE, rng.randrange(4)):
        lines += _definition(name, rng)
    lines += [_use(rng) for _ in range(rng.randrange(2))]
    return "\n".join(lines) + "\n"


def _import(rng: random.Random) -> str:
    before = rng.choice(["", "", "", "if __name__ == '__main__': "])
    return f"{before}import {rng.choice(MODULES)}"


def _definition(name: str, rng: random.Random) -> list[str]:
    body = f"    return {_use(rng)}"
    if name in ("_C", "_D"):
        inner = rng.choice(["run", "_f", "__init__"])
        return [f"class {name}:", f"    def {inner}(self):", f"    {body}"]
    around = rng.choice(["", "", "@register\n", "def run():\n "])
    return [f"{around}def {name}():", body] if around != "def run():\n " else ["def run():", body]


def _use(rng: random.Random) -> str:
    name, other = rng.choice(PRIVATE), rng.choice(MODULES)
    return rng.choice([f"{name}()", f"{other}.{name}()", f"self.{name}", f"lambda: {name}", "1"])


def changes(seed: int) -> Iterator[dict[str, str | None]]:
    """Saved and deleted files, without end."""
    rng = random.Random(seed)
    while True:
        files = rng.sample(MODULES, rng.choice([1, 1, 1, 2, 4]))
        yield {f"{file}.py": module(rng) if rng.random() < 0.85 else None for file in files}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_generated_modules(seed: int) -> None:
    project = made({})
    seen = 0
    for change in islice(changes(seed), 40):
        edit(project, change)
        check(project)
        seen += len(found(project, "import-cycle")) + len(found(project, "unreachable-definition"))
    assert seen > 40
    for name in ("import-cycle", "unreachable-definition"):
        project.views[name].verify()


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 6])
def test_edits_of_real_modules(seed: int) -> None:
    sources = small_package()
    project = made(sources)
    check(project)
    for change in islice(edits(sources, seed), 20):
        edit(project, {change.file: change.source})
        check(project)


def test_a_circle_opens_and_closes_with_an_edit_of_any_of_its_modules() -> None:
    ring = {f"{name}.py": f"import {after}\n" for name, after in ("ab", "bc", "cd", "da")}
    project = made(ring)
    places = sorted(f"{name}:1" for name in ring)
    for file in ring:
        edit(project, {file: "x = 1\n"})
        assert found(project, "import-cycle") == []
        edit(project, {file: ring[file]})
        assert found(project, "import-cycle") == places


def test_each_import_in_a_circle_tells_its_own_and_a_shorter_one_when_there_is_one() -> None:
    project = made({"a.py": "import b\n", "b.py": "import c\n", "c.py": "import a\n"})
    assert messages(project) == {"a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c"}
    edit(project, {"b.py": "import a, c\n"})
    assert messages(project) == {
        "a -> b -> a",
        "b -> a -> b",
        "b -> c -> a -> b",
        "c -> a -> b -> c",
    }


def test_of_circles_of_one_length_the_first_by_name_is_told() -> None:
    first = {"a.py": "import b, c\n", "b.py": "import y\n", "y.py": "import d\n"}
    other = {"d.py": "import a\n", "c.py": "import x\n", "x.py": "import d\n"}
    project = made(other)
    edit(project, first)
    assert "d -> a -> b -> y -> d" in messages(project)
    edit(project, {"b.py": "\n"})
    assert "d -> a -> c -> x -> d" in messages(project)
    edit(project, {"b.py": first["b.py"]})
    assert "d -> a -> b -> y -> d" in messages(project)
    check(project)


def messages(project: Project) -> set[str]:
    """Return the reported circles of imports."""
    return {f.message.partition(": ")[2] for f in project.views["import-cycle"]}


def circle(count: int) -> Project:
    """Return `count` modules in a circle."""
    return made({f"m{n}.py": f"import m{(n + 1) % count}\n" for n in range(count)})


def test_a_circle_that_is_too_long_to_be_told_is_found() -> None:
    found = messages(circle(40))
    assert len(found) == 40
    assert "m7 -> m8 -> ... -> m7" in found


@pytest.mark.long
@pytest.mark.parametrize("more", [0, 1])
def test_the_longest_circle_that_is_told(more: int) -> None:
    project = circle(LONGEST + more)
    check(project)
    told = {message.count("->") for message in messages(project)}
    assert told == ({3} if more else {LONGEST})


def test_pairs_that_no_circle_can_have_are_not_kept() -> None:
    users = {f"user{n}.py": "import hub\n" for n in range(60)}
    used = {f"used{n}.py": "" for n in range(60)}
    hub = "".join(f"import used{n}\n" for n in range(60))
    project = made({**users, **used, "hub.py": hub})
    assert project.views["import-cycle"].stats().rows < 60 * 60
    edit(project, {"used7.py": "import user7\n"})
    assert messages(project) == {
        "hub -> used7 -> user7 -> hub",
        "used7 -> user7 -> hub -> used7",
        "user7 -> hub -> used7 -> user7",
    }


def test_what_is_reached_by_one_use_only_is_lost_with_it_and_all_behind_it() -> None:
    code = "def _f(): _g()\ndef _g(): _h()\ndef _h(): _f()\n"
    project = made({"a.py": code, "b.py": "import a\na._f()\n"})
    assert found(project, "unreachable-definition") == []
    edit(project, {"b.py": "import a\na.f()\n"})
    assert found(project, "unreachable-definition") == ["a.py:1", "a.py:2", "a.py:3"]
    edit(project, {"c.py": "import a\ndef run(): a._g()\n"})
    assert found(project, "unreachable-definition") == []
