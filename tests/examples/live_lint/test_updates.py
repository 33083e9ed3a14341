"""An edit changes findings in all modules that it concerns, by work that depends on it alone."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from examples.live_lint.checks import CHECKS, name_of
from examples.live_lint.edits import edits
from examples.live_lint.project import Project
from tests.budget import cases, stride

from .linting import KNOWN, edit, found, made

LINTER = Path(__file__).parents[3] / "examples" / "live_lint"
BASE = "class Base:\n    def __init__(self): self.x = 1\n    def run(self, x): return self.x + x\n"
CHILD = "from base import Base\nclass Child(Base):\n    def run(self, x): return x\n"


def small_package() -> dict[str, bytes]:
    """Some files of the linter itself, and two that share a class."""
    names = ["facts", "shapes", "walk", "names", "imports", "blocks", "project", "watch", "show"]
    own = {f"lint/{name}.py": (LINTER / f"{name}.py").read_bytes() for name in names}
    users = {f"child{n}.py": f"{CHILD}print(Child(), {n})\n".encode() for n in range(4)}
    return {"lint/__init__.py": b"", "base.py": BASE.encode(), **users, **own}


def test_a_finding_comes_and_goes_with_an_edit_of_its_own_file() -> None:
    project = made({"a.py": "import os\nos.getcwd()\n"})
    assert project.findings() == []
    edit(project, {"a.py": "import os\n"})
    assert found(project, "unused-import") == ["a.py:1"]
    edit(project, {"a.py": ""})
    assert project.findings() == []


def test_a_finding_comes_and_goes_with_an_edit_of_another_file() -> None:
    project = made({"base.py": BASE, "a.py": CHILD})
    assert found(project, "override-parameters") == []
    edit(project, {"base.py": BASE.replace("run(self, x)", "run(self, x, y)")})
    assert found(project, "override-parameters") == ["a.py:3"]
    edit(project, {"base.py": BASE.replace("Base", "Basis")})
    assert found(project, "override-parameters") == []
    assert found(project, "missing-name") == ["a.py:1"]
    edit(project, {"base.py": None})
    assert found(project, "missing-module") == ["a.py:1"]
    edit(project, {"base.py": BASE})
    assert project.findings() == []


def test_a_syntax_error_takes_the_facts_of_its_file_only() -> None:
    project = made({"base.py": BASE, "a.py": CHILD, "b.py": "import os\n"})
    edit(project, {"a.py": CHILD + "call(\n"})
    assert [f.check for f in project.findings()] == ["syntax-error", "unused-import"]
    edit(project, {"a.py": CHILD})
    assert [f.check for f in project.findings()] == ["unused-import"]


def test_a_change_of_several_files_is_one_commit_and_none_without_new_facts() -> None:
    project = made({"a.py": "import b\nb.f()\n", "b.py": "def f(): g()\n"})
    version = project.db.version
    edit(project, {"a.py": "from c import f\nf()\n", "b.py": None, "c.py": "def f(): g()\n"})
    assert project.db.version == version + 1
    assert project.files == ["a.py", "c.py"]
    edit(project, {"a.py": "from c import f  # a comment\nf()\n"})
    assert project.db.version == version + 1


def test_a_project_without_files_holds_nothing() -> None:
    sources = small_package()
    project = made(sources)
    edit(project, dict.fromkeys(sources))
    assert project.findings() == []
    assert project.count() == 0
    assert [t.name for t in project.db.tables() if len(t)] == ["Known"]


@pytest.mark.long
@pytest.mark.parametrize("seed", cases(7, 8))
def test_after_every_random_edit_the_findings_are_those_of_a_fresh_database(seed: int) -> None:
    sources = small_package()
    project = made(sources)
    seen: set[str] = set()
    for number, change in enumerate(islice(edits(sources, seed), 30), 1):
        edit(project, {change.file: change.source})
        if number % stride(1, share=3) == 0:
            fresh = Project(KNOWN)
            fresh.put({file: project.facts(file) for file in project.files})
            assert project.findings() == fresh.findings(), change.what
        seen.update(finding.check for finding in project.findings())
    project.verify()
    assert len(seen) >= 5


def test_edits_are_the_same_for_the_same_seed() -> None:
    sources = small_package()
    first, second = (list(islice(edits(sources, seed=3), 20)) for _ in range(2))
    other = list(islice(edits(sources, seed=4), 20))
    assert first == second != other
    assert len({change.what for change in first}) > 5


def many(count: int) -> dict[str, str]:
    """Modules that each use another one by import, inheritance and calls; five in each circle."""
    text = (
        "import os\nfrom m{0}.a import Thing{0}, run{0}\n__all__ = ['Thing{1}', 'nothing']\n"
        "class Thing{1}(Thing{0}):\n    def __init__(self, x): run{0}(x)\n"
        "    def go(self, x, y): return x\n"
        "def run{1}(x, y=[]): return _help{1}(x)\ndef _help{1}(x): return x\ndef _left{1}(): pass\n"
    )
    return {f"m{n}/a.py": text.format(n - n % 5 + (n + 1) % 5, n) for n in range(count)}


def touched_by_an_edit(count: int) -> dict[str, int]:
    """The rows that each check has to look at for an edit of one module."""
    sources = many(count)
    project = made(sources)
    changed = {"m5/a.py": "import sys\n" + sources["m5/a.py"].replace("x, y=[]", "x")}
    edit(project, changed)  # the first look-up in an index makes it
    edit(project, {"m5/a.py": sources["m5/a.py"]})
    before = {name: view.stats().touched for name, view in project.views.items()}
    edit(project, changed)
    after = {name: view.stats().touched for name, view in project.views.items()}
    return {name: after[name] - before[name] for name in before}


@pytest.mark.long
def test_the_work_of_an_edit_does_not_depend_on_the_size_of_the_project() -> None:
    small, large = touched_by_an_edit(10), touched_by_an_edit(300)
    assert small == large
    assert sum(small.values()) < 2000


def test_work_is_counted_for_every_check() -> None:
    project = made(many(5))
    before = {name: view.stats().touched for name, view in project.views.items()}
    edit(
        project, {"m0/a.py": "import os\ndef f(x, y=[]): pass\ntry: f()\nexcept: pass\nclass C(:\n"}
    )
    edit(project, {"m0/a.py": "import os\ndef f(x, y=[]): pass\ntry: f()\nexcept: pass\n"})
    idle = [name for name, view in project.views.items() if view.stats().touched == before[name]]
    assert before.keys() == {name_of(check) for check in CHECKS}
    assert idle == []
