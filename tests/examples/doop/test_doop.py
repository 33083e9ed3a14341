"""Points-to analyses in Datalog, against a worklist from scratch after every commit of edits."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from examples.doop.analysis import ANALYSES, SHAPES, PointsTo, classes, merge
from examples.doop.extract import Facts, MethodCode, extract
from examples.doop.worklist import solve
from examples.findbugs.classfile import read
from examples.findbugs.facts import INSTRUCTIONS, Code, Handler, MethodDecl
from examples.findbugs.faults import cases
from reactive import Database
from tests.budget import seeds

RELATIONS = ("VarPointsTo", "CallEdge", "Reachable", "MayFail")


def plain(row: Any) -> Any:
    return tuple(map(plain, row)) if isinstance(row, tuple) else row


def copied(facts: Facts) -> Facts:
    return {name: set(rows) for name, rows in facts.items()}


def edited(random: Random, whole: Facts, facts: Facts) -> Facts:
    """Delete some facts, insert deleted ones again, or mix the columns of two statements."""
    after = copied(facts)
    for _ in range(random.choice([1, 1, 1, 5, 20])):
        name = random.choice(sorted(whole))
        gone = sorted(whole[name] - after[name])
        if gone and random.random() < 0.7:
            after[name].add(random.choice(gone))
        elif after[name]:
            after[name].remove(random.choice(sorted(after[name])))
    for name in ("Assign", "Load", "Store", "Cast", "ArrayStore", "Caught"):
        if random.random() < 0.2:
            one, other = (random.choice(sorted(whole[name])) for _ in range(2))
            at = random.randrange(len(one))
            after[name].add(one[:at] + other[at:])
    return after


@pytest.mark.parametrize("seed", seeds(2))
def test_the_analyses_equal_a_worklist_after_every_edit(seed: int) -> None:
    random = Random(seed)
    analyses = random.sample(ANALYSES, 2)
    by_class = classes(SHAPES)
    whole = merge(by_class.values())
    found = PointsTo(Database())
    views = {
        (analysis, name): found.relation(analysis, name).materialize()
        for analysis in analyses
        for name in RELATIONS
    }
    facts: Facts = {name: set() for name in whole}
    for step in range(8):
        if step % 5 == 0:
            after = copied(whole)
        elif random.random() < 0.3:
            kept = [each for each in by_class.values() if random.random() < 0.8]
            after = {name: set() for name in whole} | merge(kept)
        else:
            after = edited(random, whole, facts)
        found.replace(facts, after)
        facts = after
        for analysis in analyses:
            result = solve(facts, analysis)
            for name in RELATIONS:
                got = {plain(row) for row in views[analysis, name]}
                assert got == getattr(result, name), (seed, step, analysis, name)
    found.replace(facts, {})
    assert not any(map(len, views.values()))


def test_contexts_tell_the_elements_of_two_lists_apart() -> None:
    found = PointsTo(Database())
    failing = {
        each: found.relation(each, "MayFail").materialize()
        for each in ("insensitive", "twoObjects")
    }
    chosen = found.relation("twoObjects", "PointsToHeap").materialize()
    calls = found.relation("twoObjects", "Calls").materialize()
    found.replace({}, merge(classes(SHAPES).values()))
    assert {row.type for row in failing["insensitive"]} == {"Circle", "Square", "java/lang/String"}
    assert not list(failing["twoObjects"])

    text = "Shapes.main([Ljava/lang/String;)V"
    heaps = defaultdict(set)
    for row in chosen:
        heaps[row.variable].add(row.heap.split(" ", 1)[1])
    # The exception of an empty list, its text, and the texts that are labels.
    assert heaps["Missing.<init>(Ljava/lang/Object;)V#0"] == {"'empty'"}
    labels = heaps["Shape.label(Ljava/lang/Object;)V#0"]
    assert labels == {"'round'", "new Pair"}
    assert heaps["Registry.note(Ljava/lang/Object;)V#0"] == {
        "new Circle",
        "new Square",
        "new Group",
    }
    # `seen` may be the text of the exception, which comes to a handler of another method.
    caught = [variable for variable in heaps if variable.startswith(text) and "caught" in variable]
    assert [heaps[variable] for variable in caught] == [{"new Missing"}]
    run = {row.method for row in calls}
    assert "Visitor.square(LSquare;)Ljava/lang/Object;" in run  # a default method
    assert "Chain$1.next()Ljava/lang/Object;" in run
    assert "Shape.accept(LVisitor;)Ljava/lang/Object;" not in run


def test_no_stack_is_deeper_than_the_compiler_says() -> None:
    """A compiler states the depth of each stack: it holds the effects of all instructions."""
    methods = 0
    for one in [*cases()][::8]:
        for name, data in one.classes.items():
            facts: Any = read(data, name)
            extract(facts)
            stated = {code.method: code.max_stack for code in facts.get(Code, ())}
            for method in facts.get(MethodDecl, ()):
                if method.method in stated:
                    code = [
                        each
                        for kind in INSTRUCTIONS
                        for each in facts.get(kind, ())
                        if each.method == method.method
                    ]
                    handlers = [h for h in facts.get(Handler, ()) if h.method == method.method]
                    run = MethodCode(method.method, method, code, handlers, defaultdict(set))
                    run.run()
                    assert run.depth() <= stated[method.method], (name, method.method)
                    last = {len(run._state(each.pc).stack) for each in code if each.opcode == 177}
                    assert last <= {0}, (name, method.method)
                    methods += 1
    assert methods > 50


@pytest.mark.long
@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler")
def test_the_classes_are_those_of_the_source(tmp_path: Path) -> None:
    source = SHAPES.with_name("Shapes.java")
    subprocess.run(
        ["javac", "-XDstringConcat=inline", "-g:none", "-d", tmp_path, source], check=True
    )
    compiled = merge(extract(read(each.read_bytes(), each.name)) for each in tmp_path.iterdir())
    whole = merge(classes(SHAPES).values())
    for name in ("DeclaredMethod", "DeclaredField", "DirectSuperclass", "ClassType"):
        assert compiled[name] == whole[name]
