"""The figures show every change inside their axes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from examples.findbugs.difference import Difference
from examples.findbugs.facts import ClassDecl
from examples.findbugs.recorded import Revision
from examples.findbugs.replay.figures import draw
from examples.findbugs.replay.steps import Step
from examples.findbugs.replay.summary import Fit
from examples.watching import MissingExtra

LINE = Fit(1e-5, 1e-6, 0.9)
PNG = b"\x89PNG\r\n\x1a\n"


def step(facts: int, seconds: float) -> Step:
    rows: list[Any] = [ClassDecl(f"C{number}", 52, 1, None, ()) for number in range(facts)]
    revision = Revision("", 1, Difference({}, {ClassDecl: rows}))
    return Step(revision, facts, seconds, {}, {}, 0)


STEPS = [step(0, 2e-6), step(3, 1e-5), step(40, 2e-4), step(700, 3e-3)]
PEAKS = [1_024, 2_048, 10_000, 200_000]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are saved."""
    figure = pytest.importorskip("matplotlib.figure").Figure
    found: list[Any] = []
    save = figure.savefig

    def noted(self: Any, file: Path) -> None:
        found.append(self)
        save(self, file)

    monkeypatch.setattr(figure, "savefig", noted)
    return found


def points(axes: Any) -> list[tuple[float, float]]:
    return [tuple(point) for point in axes.collections[0].get_offsets().tolist()]


def test_figures_are_images_named_after_the_history(drawn: list[Any], tmp_path: Path) -> None:
    files = draw(tmp_path, "shop", STEPS, LINE, PEAKS)
    assert [file.name for file in files] == ["findbugs-shop-time.png", "findbugs-shop-memory.png"]
    assert all(file.read_bytes().startswith(PNG) for file in files)
    assert sorted(files) == sorted(tmp_path.iterdir())
    assert [figure.axes[0].get_title().partition(":")[0] for figure in drawn] == ["shop"] * 2


def test_every_change_is_a_point_with_its_facts(drawn: list[Any], tmp_path: Path) -> None:
    draw(tmp_path, "shop", STEPS, LINE, PEAKS)
    time, memory = (figure.axes[0] for figure in drawn)
    assert points(time) == [(0, 2e-3), (3, 1e-2), (40, 0.2), (700, 3.0)]
    assert points(memory) == [(0, 1), (3, 2), (40, 10_000 / 1024), (700, 200_000 / 1024)]


def test_all_points_are_inside_the_axes(drawn: list[Any], tmp_path: Path) -> None:
    draw(tmp_path, "shop", STEPS, LINE, PEAKS)
    for axes in (figure.axes[0] for figure in drawn):
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert all(left < x < right and low < y < high for x, y in points(axes))


def test_the_line_is_the_one_that_was_fitted(drawn: list[Any], tmp_path: Path) -> None:
    draw(tmp_path, "shop", STEPS, LINE, PEAKS)
    [line] = drawn[0].axes[0].get_lines()
    sizes, times = line.get_data()
    assert (sizes[0], sizes[-1]) == (0, pytest.approx(700))
    assert times[-1] == pytest.approx((1e-5 + 700e-6) * 1e3)
    assert line.get_label() == "10.0 µs + 1.00 µs per fact (R² = 0.900)"


def test_without_a_line_the_points_are_drawn(drawn: list[Any], tmp_path: Path) -> None:
    draw(tmp_path, "shop", STEPS[:1], None, PEAKS[:1])
    assert not drawn[0].axes[0].get_lines()
    assert points(drawn[0].axes[0]) == [(0, 2e-3)]


def test_without_memory_there_is_the_figure_of_times(drawn: list[Any], tmp_path: Path) -> None:
    [time] = draw(tmp_path, "shop", STEPS, LINE, None)
    assert [*tmp_path.iterdir()] == [time] == [tmp_path / "findbugs-shop-time.png"]


def test_without_matplotlib_one_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match="pip install matplotlib"):
        draw(tmp_path, "shop", STEPS, LINE, PEAKS)
    assert not [*tmp_path.iterdir()]
