"""Which query each view had whose state is kept in a checkpoint, by the names of the views.

    views.json      {"format": 1, "views": {"per town": ["4b1c738cb36b..."]}}

State is found by the fingerprint of its plan, so a view whose query has changed finds none. This
is how that is told from a view that is new.

State:  the fingerprints of views with a name, as an earlier process and as this one has had them.
Cost:   O(views) to note one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spark_backend.cluster.files import located, put
from spark_backend.cluster.session import Session

FORMAT = 1
FILE = "views.json"


class ViewLedger:
    """The views of a checkpoint; a file that cannot be read counts as none.

    Parameters
    ----------
    folder: the checkpoint, as a path or URI.
    """

    def __init__(self, session: Session, folder: str) -> None:
        found = located(folder, session)
        self._files, self._root = found.files, found.root
        self._before = self._read()
        self._now: dict[str, list[str]] = {}

    def changed(self, views: Mapping[str, str]) -> list[str]:
        """The names of those that had another query in an earlier process.

        Parameters
        ----------
        views: the fingerprint of the query of each, by its name.
        """
        return [name for name, plan in views.items() if plan not in self._before.get(name, [plan])]

    def note(self, views: Mapping[str, str]) -> None:
        """State of these is now kept."""
        new = {n: p for n, p in views.items() if p not in self._now.get(n, ())}
        for name, plan in new.items():
            self._now.setdefault(name, []).append(plan)
        if new:
            self._write()

    def _write(self) -> None:
        self._files.create_dir(self._root, recursive=True)
        found = {"format": FORMAT, "views": self._before | self._now}
        put(self._files, f"{self._root}/{FILE}", json.dumps(found).encode())

    def _read(self) -> dict[str, list[str]]:
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            with self._files.open_input_stream(f"{self._root}/{FILE}") as stream:
                found: Any = json.loads(stream.read())
            if found["format"] == FORMAT:
                return {str(name): list(map(str, plans)) for name, plans in found["views"].items()}
        return {}
