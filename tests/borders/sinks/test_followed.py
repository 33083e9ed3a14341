"""Sinks of offloaded views: the backend writes their rows, and none passes this process."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, OffloadError, Sink
from reactive.borders.sinks.gathered_changes import GatheredChanges
from reactive.borders.sinks.sink import FollowedChanges
from spark_backend import ChangesFolder
from spark_backend.codec.schema import kept_as
from spark_backend.sinks import outbox
from spark_backend.sinks.outbox import FileOutbox, FramesTarget
from tests.borders.sinks.away import Away, Session
from tests.borders.sinks.crashing import Crash, crash_at_every_step
from tests.borders.sinks.histories import Shop, Town, bag, named, per_town
from tests.borders.sinks.test_crashes import Called, Changes, Kind, Objects, Rows

VIEWS = {per_town: tuple[str | None, int, float], named: Town}


class Framed(Called):
    """A function of frames."""

    def target(self) -> Any:
        outbox = FileOutbox(str(self.folder / "box"), row_type=self.row_type)
        outbox._files = self.files = self.wrapped(outbox._files)
        of_session: Any = Session()
        return FramesTarget(of_session, lambda frame, number: self.receive(number, frame), outbox)


KINDS: tuple[type[Kind], ...] = (Changes, Objects, Rows, Framed)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make_view", VIEWS)
def test_a_process_may_end_at_any_step_of_what_is_written_elsewhere(
    kind: type[Kind], make_view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_FILES", 2)
    crash_at_every_step(partial(run, kind, make_view), tmp_path, histories=4)


def run(kind: type[Kind], make_view: Any, folder: Path, seed: int, at: int) -> bool:
    """A history of a view that moves, and of a process that ends at a step, and at a later one."""
    steps, times = 0, [at, at + 3]

    def step() -> None:
        nonlocal steps
        steps += 1
        if times and steps > times[0]:
            del times[0]
            raise Crash

    made = kind(folder, None, lambda files: Stepping(files, step))
    shop = Shop(Random(seed), make_view, made.sink)

    def begin() -> None:
        away = Away(kept=kept_as(VIEWS[make_view]), step=step)
        shop.begin_in(Database(offload=away))
        shop.view.offload()

    shop.begin = begin  # type: ignore[method-assign]
    shop.begin_again()
    for _ in range(5):
        shop.change()
        shop.surely(lambda: shop.sink.flush())
        assert made.content() == bag(shop.view)
        if shop.random.random() < 0.3:
            shop.move()
        if shop.random.random() < 0.2:
            shop.surely(shop.begin)  # it ends between two batches
    return shop.crashes > 0


class Stepping:
    """A file system on which a process may end before and after each call."""

    def __init__(self, files: Any, step: Any) -> None:
        self._files, self._step = files, step

    def step(self) -> None:
        self._step()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._files, name)
        if name not in ("move", "create_dir", "delete_dir", "delete_file", "open_output_stream"):
            return found

        def done(*given: Any, **named: Any) -> Any:
            self._step()
            result = found(*given, **named)
            self._step()
            return result

        return done


def moved(folder: Path, **options: Any) -> tuple[Away, Any, Any, Sink]:
    away = Away(kept=kept_as(tuple[int, int]), **options)
    db = Database(offload=away)
    words = db.table(str, name="words")
    view = words.group_by(len).aggregate(Count()).materialize("lengths")
    view.offload()
    return away, words, view, view.write_to(ChangesFolder(folder / "out"))


def content(folder: Path) -> Counter[Any]:
    return Changes(folder, None, lambda files: files).content()


def test_no_row_of_a_view_elsewhere_is_fetched_for_a_sink(tmp_path: Path) -> None:
    away, words, view, sink = moved(tmp_path)
    operator = view._node.inputs[0].operator
    words.add_all(["to", "be", "that"])
    sink.flush()
    words.remove("that")
    assert sink.lag.waiting == 0
    view._engine.offloading.flush()
    assert sink.lag.waiting == 1
    sink.flush()
    assert (operator.fetched, operator.remote.asked) == (0, [])
    assert away.written == [2, 1], "the first batch, and what has changed"
    assert content(tmp_path) == Counter([(2, 2)])
    assert repr(sink.position) == "Position(batch=1, version=2)"


def test_changes_that_cancel_elsewhere_are_no_batch(tmp_path: Path) -> None:
    _, words, view, sink = moved(tmp_path)
    words.add("to")
    sink.flush()
    words.add("that")
    view._engine.offloading.flush()
    words.remove("that")
    position = sink.flush()
    assert position is not None and position.batch == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["batch=000000000000"]


def test_how_a_view_is_read_is_chosen_anew_when_it_moves(tmp_path: Path) -> None:
    _, words, view, sink = moved(tmp_path)
    for word, kind in [
        ("a", FollowedChanges),
        ("be", GatheredChanges),
        ("see", FollowedChanges),
        ("a", FollowedChanges),
    ]:
        if kind is GatheredChanges:
            view.recall()
        elif word == "see":
            view.offload()
        words.add(word)
        sink.flush()
        assert isinstance(sink._gathered, kind)
        assert content(tmp_path) == bag(view)


def test_a_view_that_is_brought_back_while_it_is_written_is_compared_once_more(
    tmp_path: Path,
) -> None:
    away, words, view, sink = moved(tmp_path)
    words.add("to")
    sink.flush()
    away.step = lambda: view.recall() if view._node.inputs[0].is_remote else None
    words.add("be")
    position = sink.flush()
    assert isinstance(sink._gathered, GatheredChanges)
    assert content(tmp_path) == Counter([(2, 2)])
    assert position is not None and position.batch == 1


def test_what_cannot_be_written_elsewhere_waits_and_is_written_once(tmp_path: Path) -> None:
    away, words, view, sink = moved(tmp_path)
    words.add("to")
    fails = [True]

    def fail() -> None:
        if fails[0]:
            raise ConnectionError("nobody is there")

    away.step = fail
    for word in ("be", "or"):
        with pytest.raises(ConnectionError):
            sink.flush()
        assert sink.state == "failed"
        words.add(word)
    fails[0] = False
    sink.flush()
    words.add("not")
    sink.flush()
    assert content(tmp_path) == Counter([(2, 3), (3, 1)])
    assert view is not None and sink.state == "running"


def test_what_does_not_fit_the_files_is_refused_before_it_is_written(tmp_path: Path) -> None:
    away, words, _, sink = moved(tmp_path)
    words.add("to")
    sink.flush()
    away.kept = kept_as(tuple[int, float])
    words.add("be")
    with pytest.raises(OffloadError, match="the target has the columns"):
        sink.flush()
    away.kept = kept_as(tuple[int, int])
    sink.flush()
    assert content(tmp_path) == Counter([(2, 2)])
