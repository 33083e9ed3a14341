"""Modules that are imported when one of their names is first read."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from threading import Barrier, Thread
from types import ModuleType
from typing import Any

import pytest

from optimizer.lazy import Lazy, lazily, make_module_getattr

LATE = """
from time import sleep
sleep(0.02)
loaded.append(__name__)
class Thing:
    size = 3
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package with a module `late`, which notes in `loaded` that it is imported."""
    (tmp_path / "a_room").mkdir()
    (tmp_path / "a_room" / "__init__.py").write_text("loaded = []\n")
    (tmp_path / "a_room" / "late.py").write_text("from a_room import loaded\n" + LATE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("a_room")
    for name in ("a_room", "a_room.late"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_when_it_is_first_asked_and_once(room: Any) -> None:
    lazily("a_room.late")
    from a_room import late  # type: ignore[import-not-found]

    assert "a_room.late" not in sys.modules
    assert "late" in repr(late)
    assert room.loaded == []
    assert late.Thing.size == 3
    assert late.Thing is late.Thing is sys.modules["a_room.late"].Thing
    assert room.loaded == ["a_room.late"]


def test_who_imports_it_in_any_other_way_has_the_module_itself(room: Any) -> None:
    lazily("a_room.late")
    import a_room.late as itself  # type: ignore[import-not-found]
    from a_room.late import Thing

    assert isinstance(itself, ModuleType)
    assert itself.Thing is Thing
    assert room.late is itself


def test_what_is_imported_already_stays(room: Any) -> None:
    itself = importlib.import_module("a_room.late")
    lazily("a_room.late")
    assert room.late is itself


def test_names_that_it_does_not_have_are_not_there(room: Any) -> None:
    lazily("a_room.late")
    with pytest.raises(AttributeError, match="late"):
        _ = room.late.other
    assert not hasattr(room.late, "other")
    assert "Thing" in dir(room.late)


def test_tools_that_look_at_all_that_there_is_import_nothing(room: Any) -> None:
    lazily("a_room.late")
    assert not hasattr(room.late, "__wrapped__")
    assert room.loaded == []


def test_threads_that_ask_at_once_all_find_it_whole(room: Any) -> None:
    lazily("a_room.late")
    late, barrier, found = room.late, Barrier(8), list[int]()

    def ask() -> None:
        barrier.wait()
        found.append(late.Thing.size)

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 8
    assert room.loaded == ["a_room.late"]


def test_what_fails_to_be_imported_is_asked_for_again() -> None:
    missing = Lazy("a_room_that_is_not_there")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            _ = missing.thing


def test_a_package_has_names_of_modules_that_are_not_imported(room: Any) -> None:
    room.__getattr__ = make_module_getattr("a_room", {"Thing": "a_room.late"})
    assert room.loaded == []
    assert room.Thing.size == 3
    assert vars(room)["Thing"] is room.late.Thing
    with pytest.raises(AttributeError, match="module 'a_room' has no attribute 'other'"):
        _ = room.other
