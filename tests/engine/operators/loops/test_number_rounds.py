"""Rounds over arrays of floats: to the bit the rows of rounds over lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import fsum
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.operators.loops import number_rounds
from reactive.engine.operators.loops.kept_rounds import KeptRounds
from reactive.engine.operators.loops.number_rounds import NoNumbers, sum_groups
from tests.budget import examples, sampled
from tests.engine.operators.loops import test_layout as fixed
from tests.engine.operators.loops import test_settled_rounds as settled

Rel = Any
FLOATS = st.one_of(
    st.floats(-1, 1),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from([2.0**53, -(2.0**53), 1.0, -1.0, 2.0**-60, 3 * 2.0**-53, 0.1, -0.1, -0.0]),
    st.floats(1e-200, 1e200),
).filter(lambda value: value == 0 or abs(value) > 1e-200)
WEIGHTS: dict[str, list[Any]] = {
    "floats": [0.1, 0.7, 3.0, -0.25],
    "of all sizes": [0.1, 1e17, 1e-30, 1e200],
    "integers": [1, 2, 3],
    "both": [1, 0.1, 3],
    "with others": [1.5, float("nan"), float("inf")],
    "that raise": [1.0, 0, None],
    "zeros": [0.0, 1.0],
    "integers that are no floats": [2**60 + 1, 3],
}


@examples(300)
@given(groups=st.lists(st.lists(FLOATS, min_size=1, max_size=9), min_size=1, max_size=5))
def test_sums_are_rounded_as_by_fsum(groups: list[list[float]]) -> None:
    values = numpy.array([value for some in groups for value in some])
    numbers = numpy.repeat(numpy.arange(len(groups)), list(map(len, groups)))
    found = sum_groups(numpy, values, numbers, len(groups), max(map(len, groups)))
    assert list(map(repr, found.tolist())) == [repr(fsum(some)) for some in groups]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 1e-300])
def test_values_that_cannot_be_cut_are_left_to_lists(value: float) -> None:
    with pytest.raises(NoNumbers):
        sum_groups(numpy, numpy.array([1.0, value]), numpy.array([0, 0]), 1, 2)


def with_arrays(patch: pytest.MonkeyPatch, found: Any) -> None:
    """Compute rounds over arrays, or over lists if numpy is not `found`, for any number of rows."""
    patch.setattr(number_rounds, "find_numpy", lambda rows: found)
    patch.setattr(number_rounds, "FEWEST", 0)


def is_equal_after(edit: Callable[[Any, Any], Any], sides: list[Any], transaction: Any) -> None:
    raised = []
    for side, found in zip(sides, (numpy, None), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            with_arrays(patch, found)
            raised.append(edit(side, transaction))
    assert raised[0] == raised[1]
    mine, theirs = (sorted(map(repr, side.view.zset().items())) for side in sides)
    assert mine == theirs


@pytest.mark.usefixtures("only_whole")
@sampled
@pytest.mark.parametrize("loop", fixed.LOOPS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_rows_of_a_number_of_rounds_are_the_same(
    weights: str, loop: Callable[[Rel, int], Rel]
) -> None:
    @examples(12)
    @given(edits=fixed.edits_of(list(range(5)), WEIGHTS[weights]), times=st.integers(3, 7))
    def run(edits: Any, times: int) -> None:
        sides = [fixed.Side(loop, times, optimize=True) for _ in range(2)]
        for transaction in edits:
            is_equal_after(fixed.Side.edit, sides, transaction)
        sides[0].view.verify()

    run()


@pytest.mark.usefixtures("only_whole")
@pytest.mark.parametrize("weight", [2**60 + 1, 3, 0.5])
def test_no_error_of_arrays_makes_rounds_careful(
    weight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[BaseException] = []
    monkeypatch.setattr(
        "reactive.engine.operators.loop.loop_recomputation.reraise_asynchronous", raised.append
    )
    with_arrays(monkeypatch, numpy)
    side = fixed.Side(fixed.ranks, 5, optimize=True)
    side.edges.add_all([fixed.Edge(n, (7 * n + 1) % 30, weight) for n in range(30)])
    assert not raised
    side.view.verify()


only_whole = fixed.only_whole


@sampled
@pytest.mark.parametrize("loop", settled.LOOPS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("words", [settled.WORDS, settled.CONTRACTION], ids=["anew", "continued"])
def test_rows_that_settle_are_the_same(
    words: Any, weights: str, loop: Callable[[Rel, Any], Rel]
) -> None:
    @examples(12)
    @given(edits=settled.edits_of(WEIGHTS[weights]))
    def run(edits: Any) -> None:
        given = {**words, "max_rounds": 40} if loop is not settled.exact else words
        sides = [settled.Side(loop, given, single=False) for _ in range(2)]
        for transaction in edits:
            is_equal_after(settled.Side.edit, sides, transaction)

    run()


def numpy_for(least: int, looked: int) -> Any:
    return numpy if looked >= least else None


def test_rounds_of_lists_that_have_begun_go_on_over_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy is imported once the rounds have looked at as many rows as that is worth."""
    rows = []
    for least in (0, 40, 10**9):
        side = settled.Side(settled.ranks, {**settled.WORDS, "tolerance": 1e-6}, single=False)
        monkeypatch.setattr(number_rounds, "FEWEST", 0)
        monkeypatch.setattr(number_rounds, "find_numpy", partial(numpy_for, least))
        side.edges.add_all(settled.RING)
        side.edges.add_all([settled.Edge(n, (n + 4) % 9, 0.25) for n in range(9)])
        rows.append(sorted(map(repr, side.view)))
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.usefixtures("only_whole")
@pytest.mark.parametrize("loop", [fixed.ranks, fixed.padded])
def test_all_rounds_of_floats_are_over_arrays(
    loop: Callable[[Rel, int], Rel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No list is made of the values of a round, whatever the number of rounds."""
    computed: list[int] = []
    compute = KeptRounds.compute

    def counted(kept: KeptRounds) -> Any:
        computed.append(1)
        return compute(kept)

    monkeypatch.setattr(KeptRounds, "compute", counted)
    monkeypatch.setattr(number_rounds, "find_numpy", lambda rows: numpy)
    side = fixed.Side(loop, 20, optimize=True)
    computed.clear()
    side.edges.add_all([fixed.Edge(n, (7 * n + 1) % 300, 1.5) for n in range(300)])
    side.edges.add_all([fixed.Edge(n, (5 * n + 2) % 300, 0.5) for n in range(300)])
    assert len(computed) == (2 if loop is fixed.padded else 0)  # its start has integers
    side.view.verify()
