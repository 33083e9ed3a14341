"""Selection of analyses: letters and names, in any case and mixed."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from examples.findbugs.analyses import ANALYSES, name_of
from examples.findbugs.letters import letters


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("A,C", "AC"),
        ("AC", "AC"),
        ("o, a", "AO"),
        ("cca,C", "AC"),
        ("DM_GC", "E"),
        ("cn_idiom", "C"),
        ("ba, dm_gc,Ms_ShouLd_be_final,O", "ABELO"),
    ],
)
def test_letters_and_names_may_be_mixed_in_any_case(text: str, asked: str) -> None:
    assert letters(text) == [*asked]


def test_every_analysis_has_its_letter_and_its_name() -> None:
    assert letters("".join(ANALYSES)) == [*ANALYSES]
    assert letters(",".join(map(name_of, ANALYSES.values()))) == [*ANALYSES]


@pytest.mark.parametrize(
    ("text", "unknown"), [("", ""), ("A,,C", ""), ("AZ", "AZ"), ("A,Z", "Z"), ("DMX", "DMX")]
)
def test_unknown_analyses_are_refused_with_those_that_there_are(text: str, unknown: str) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"there is no analysis '{unknown}', but\n  A BX"):
        letters(text)
