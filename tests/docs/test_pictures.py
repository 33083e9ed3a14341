"""The pictures of the internals name code that is there, and are as their source draws them."""

from __future__ import annotations

import runpy
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
FIGURES = ROOT / "docs" / "figures"
SOURCE: dict[str, Any] = runpy.run_path(str(FIGURES / "pictures.py"))
PICTURES: tuple[Any, ...] = SOURCE["PICTURES"]
LONGEST = 70
"""Characters that fit into a box."""

named = pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)


@named
def test_a_picture_is_what_its_source_draws(picture: Any) -> None:
    assert (FIGURES / f"{picture.name}.svg").read_text() == SOURCE["drawn"](picture)


@named
def test_the_code_that_a_picture_names_is_there(picture: Any) -> None:
    for step in picture.steps:
        for where in step.where:
            file, name = where.split(": ")
            module = import_module(file.removesuffix(".py").replace("/", "."))
            reduce(getattr, name.split("."), module)


@named
def test_texts_fit_into_their_boxes(picture: Any) -> None:
    assert [step.text for step in picture.steps if len(step.text) > LONGEST] == []


@named
def test_the_internals_show_the_picture(picture: Any) -> None:
    page = (ROOT / "docs" / "internals.md").read_text()
    assert f"](figures/{picture.name}.svg)" in page
