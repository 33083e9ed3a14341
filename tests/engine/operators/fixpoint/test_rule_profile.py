"""A profile of a recursion counts what each rule does, and changes nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from reactive import Database, FixpointError, PlanError, fixpoint
from tests.budget import seeds

TEXT = """
.decl step(x: number, y: number)    .input step
.decl wall(x: number)               .input wall
.decl far(x: number)                .output far
.decl pair(x: number, y: number)    .output pair
far(0).
far(y) :- far(x), step(x, y), !wall(y).
far(y) :- pair(_, y), y < 3.
pair(x, y) :- far(x), far(y), x < y.
"""


class Game:
    """A program with its views and tables."""

    def __init__(self) -> None:
        self.program = Database().datalog(TEXT)
        self.views = {name: self.program[name].materialize() for name in self.program}
        self.steps, self.step = self.program.tables["step"], self.program.row("step")

    def rows(self) -> dict[str, list[Any]]:
        return {name: sorted(map(tuple, view)) for name, view in self.views.items()}


def test_each_rule_has_its_rounds_and_derivations() -> None:
    game = Game()
    with game.views["far"].profile() as profile:
        game.steps.add_all([game.step(n, n + 1) for n in range(4)])
    far = [work for work in profile.rules if work.relation == "far"]
    moves = next(work for work in far if "step" in work.rule)
    assert (moves.tuples, moves.meets_all) == (4, False)
    assert 4 <= moves.rounds <= 6 and moves.touched >= 4 and moves.seconds > 0
    pairs = next(work for work in profile.rules if work.relation == "pair")
    assert (pairs.tuples, pairs.meets_all) == (10, True)
    shown = str(profile)
    assert shown.splitlines()[0].split() == ["ms", "rounds", "tuples", "touched", "rule"]
    assert len(shown.splitlines()) == 2 + len(profile.rules)  # the title, and one warning
    assert "each changed row meets all rows of the other side" in shown


def test_a_profile_counts_its_block_only() -> None:
    game = Game()
    game.steps.add(game.step(0, 1))
    profile = game.views["far"].profile()
    with profile:
        pass
    game.steps.add(game.step(1, 2))
    assert all((w.rounds, w.tuples, w.touched) == (0, 0, 0) for w in profile.rules)
    with profile, pytest.raises(PlanError, match="is being taken already"), profile:
        pass
    assert game.rows()["far"] == [(0,), (1,), (2,)]


@pytest.mark.parametrize("seed", seeds(10))
def test_results_are_the_same_while_a_profile_is_taken(seed: int) -> None:
    random = Random(seed)
    game, plain = Game(), Game()
    for _ in range(8):
        changes = [(random.random() < 0.2, random.randrange(5), random.randrange(5)) for _ in "abc"]
        with game.views["pair"].profile():
            for each in (game, plain):
                change(each, changes)
        assert game.rows() == plain.rows()
        game.views["far"].verify()


def change(game: Game, changes: list[tuple[bool, int, int]]) -> None:
    """Insert the rows that are absent, and delete those that are present."""
    for is_wall, x, y in changes:
        name = "wall" if is_wall else "step"
        table, made = game.program.tables[name], game.program.row(name)
        row = made(x) if is_wall else made(x, y)
        if row in table:
            table.remove(row)
        else:
            table.add(row)


def test_a_failing_commit_ends_a_profile_too() -> None:
    program = Database().datalog(
        ".decl a(x: number) .input a .decl b(x: number) .output b b(x) :- a(x). b(x + 1) :- b(x).",
        max_rounds=20,
    )
    view = program["b"].materialize()
    with pytest.raises(FixpointError), view.profile() as profile:
        program.tables["a"].add(program.row("a")(1))
    grows = profile.rules[-1]
    assert grows.rounds == grows.tuples == 20 and list(view) == []


def test_explain_tells_of_each_rule_and_warns_inside_a_recursion() -> None:
    game = Game()
    game.steps.add_all([game.step(n, n + 1) for n in range(4)])
    analyzed = str(game.views["far"].explain(analyze=True))
    assert "rules of far, pair:" in analyzed
    assert "touched; meets all rows of the other side]" in analyzed
    warned = str(game.views["far"].explain(costs=True))
    assert "not efficiently incremental: join on far.x < far1.x" in warned
    keyed = Database().datalog(TEXT.replace("far(y), x < y", "far(y), x = y"))
    assert "not efficiently" not in str(keyed["far"].explain(costs=True))


def test_a_closure_has_no_rules() -> None:
    program = Database().datalog("""
        .decl edge(x: number, y: number) .input edge
        .decl path(x: number, y: number) .output path
        path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).
    """)
    view = program["path"].materialize()
    with view.profile() as profile:
        program.tables["edge"].add(program.row("edge")(1, 2))
    assert list(profile.rules) == [] and len(view) == 1


def test_parts_that_are_cut_out_of_rules_are_told() -> None:
    edges = Database().table(tuple[int, int], name="edges")
    reach = fixpoint(
        lambda reach: edges.where(lambda e: e[0] == 0).union(
            reach.join(edges, on=lambda r, e: r[1] == e[0])
            .join(edges, on=lambda r, e, f: e[1] == f[0])
            .select(lambda r, e, f: (r[0], f[1]))
        )
    )
    view = reach.materialize()
    with view.profile() as profile:
        edges.add_all([(n, n + 1) for n in range(7)])
    assert sorted(view) == [(0, 1), (0, 3), (0, 5), (0, 7)]
    assert sum(work.tuples for work in profile.rules if work.relation == "reach") == 4
    assert "rules of reach:" in str(view.explain(analyze=True))


def test_a_profile_says_what_it_has_not_measured() -> None:
    profile = Game().views["far"].profile()
    assert not profile.rules
    assert str(profile).splitlines()[1].startswith("nothing is measured: with view.profile()")
    edges = Database().table(tuple[int, int], name="edges")
    paths = fixpoint(
        lambda paths: edges.union(
            paths.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    ).materialize()
    assert "runs as one operator, without rules" in str(paths.profile())
