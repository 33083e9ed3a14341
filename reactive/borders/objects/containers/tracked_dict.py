"""A dictionary that reports each change to its owners.

    tags["a"] = 1       logged: "a", which keeps its place, or is appended if it is new
    del tags["b"]       logged: "b" is deleted
    snapshot            the last one without the deleted keys, and then with the assigned ones

The undo of a deletion inserts the key where it was: before its successor. The successor of a key is
the next one in the last snapshot that is still there, or else the first key added since.

State:  the keys that changed since the last snapshot; the keys of values that change themselves.
Cost:   an edit O(1), the deletion of a key other than the last O(log n), and O(log n) at the next
        snapshot; the undo of such a deletion O(n).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import dropwhile, islice
from operator import is_
from typing import Any

from reactive.borders.objects.containers.container import (
    Container,
    Leaf,
    Undo,
    count_tracked,
    freeze_part,
    freeze_part_anew,
    is_much,
    take_value,
)
from reactive.engine.collections.frozen_dict import FrozenDict
from reactive.engine.collections.zset import EXACT
from reactive.engine.storage.rows import check_objects

NONE: Any = object()


class TrackedDict(dict[Any, Any], Container):
    """A dictionary in a tracked object. `==`, `repr`, pickles and copies are those of `dict`."""

    __slots__ = (
        "__weakref__",
        "_counts",
        "_frozen",
        "_gone",
        "_hints",
        "_log",
        "_owners",
        "_stale",
    )
    PLAIN = dict
    FROZEN = FrozenDict
    _gone: dict[Any, Any]
    _hints: dict[int, Any]
    _log: dict[Any, bool]

    def __new__(cls, *given: Any, **named: Any) -> TrackedDict:
        """Create an empty one, which `__init__` fills."""
        made = dict.__new__(cls)
        made._blank()
        made._gone, made._hints, made._log = {}, {}, {}
        return made

    def __init__(self, *given: Any, **named: Any) -> None:
        self.update(*given, **named)

    @classmethod
    def fromkeys(cls, keys: Iterable[Any], value: Any = None) -> Any:
        """Return a plain dictionary."""
        return dict.fromkeys(keys, value)

    # Changes.

    def __setitem__(self, key: Any, value: Any) -> None:
        self._change(lambda: self._put({key: value}))

    def __delitem__(self, key: Any) -> None:
        self._change(lambda: self._delete(key))

    def update(self, *given: Any, **named: Any) -> None:
        """Update as a `dict` does, but as a whole or, if an exception is raised, not at all."""
        items = dict(*given, **named)
        self._change(lambda: self._put(items))

    def __ior__(self, other: Any) -> TrackedDict:  # type: ignore[misc]
        self.update(other)
        return self

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key; insert the default first if it is missing."""
        if key not in self:
            self._change(lambda: None if key in self else self._put({key: default}))
        return self[key]

    def pop(self, key: Any, default: Any = NONE) -> Any:
        """Remove a key and return its value, as `dict.pop`."""
        found = [default]

        def pop() -> Undo | None:
            if key not in self:
                if default is NONE:
                    raise KeyError(key)
                return None
            found[0] = self[key]
            return self._delete(key)

        self._change(pop)
        return found[0]

    def popitem(self) -> tuple[Any, Any]:
        """Remove and return the last item, as `dict.popitem`."""
        found: list[tuple[Any, Any]] = []

        def pop() -> Undo | None:
            if not self:
                raise KeyError("popitem(): dictionary is empty")
            key = next(reversed(self))
            found.append((key, self[key]))
            return self._delete(key)

        self._change(pop)
        return found[0]

    def clear(self) -> None:
        """Remove all items."""

        def clear() -> Undo | None:
            return self._replace({}) if self else None

        self._change(clear)

    # Implementation of changes.

    def _put(self, items: Mapping[Any, Any]) -> Undo | None:
        """Assign values to keys; return the undo, or None if nothing has changed."""
        new = {key: take_value(value, self) for key, value in items.items()}
        new = {key: v for key, v in new.items() if self.get(key, NONE) is not v}
        if not new:
            return None
        old = {key: self.get(key, NONE) for key in new}
        self._set(new)
        return partial(self._set, dict(reversed(old.items())))

    def _set(self, items: Mapping[Any, Any]) -> None:
        """Assign values to keys; NONE deletes a key, which must be the last one."""
        for key, value in items.items():
            if value is NONE:
                self._remove(key)
            else:
                self._store(key, value)
        self._tell()

    def _store(self, key: Any, value: Any) -> None:
        """Assign one value, count tracked parts, and log the key for the next snapshot."""
        old = self.get(key, NONE)
        dict.__setitem__(self, key, value)
        count_tracked(self._counts, (value,), 1)
        count_tracked(self._counts, (old,), -1)
        if isinstance(value, Container):
            value.own(self, key)
        self._hints.pop(id(old), None)
        if self._frozen is None:
            return
        if old is NONE:
            self._log.pop(key, None)
            self._log[key] = True
        else:
            self._log.setdefault(key, False)

    def _remove(self, key: Any) -> Any:
        """Delete a key. Return its successor, or NONE."""
        last = next(reversed(self))
        behind = NONE if last is key or last == key else self._after(key)
        if self._frozen is not None:
            if not self._log.pop(key, False):
                self._gone[key] = behind
            self._log[key] = True
        self._hints.pop(id(self[key]), None)
        count_tracked(self._counts, (self[key],), -1)
        dict.__delitem__(self, key)
        return behind

    def _delete(self, key: Any) -> Undo:
        """Delete a key, which must be there; return the undo, which restores its place."""
        value = self[key]
        behind = self._remove(key)
        self._tell()
        if behind is NONE:
            return partial(self._set, {key: value})
        return partial(self._put_before, behind, key, value)

    def _put_before(self, behind: Any, key: Any, value: Any) -> None:
        """Insert a key before another key, to undo its deletion."""
        items = {}
        for each, other in self.items():
            if each is behind or each == behind:
                items[key] = value
            items[each] = other
        self._replace(items)

    def _replace(self, items: Mapping[Any, Any]) -> Undo:
        """Replace all items, of which none is converted; return the undo."""
        old = dict(self)
        dict.clear(self)
        dict.update(self, items)
        self._counts = {}
        count_tracked(self._counts, items.values(), 1)
        for key, value in items.items():
            if isinstance(value, Container):
                value.own(self, key)
        self._frozen = None
        self._tell()
        return partial(self._replace, old)

    def _after(self, key: Any) -> Any:
        """Return the successor of a key that is not the last."""
        frozen: FrozenDict[Any, Any] | None = self._frozen
        if frozen is None or self._log.get(key, False):
            return next(islice(dropwhile(lambda each: each != key, self), 1, 2), NONE)
        found = frozen.after(key, NONE)
        while found is not NONE and found in self._gone:
            found = self._gone[found]
        if found is not NONE:
            return found
        return next((each for each, is_new in self._log.items() if is_new and each in self), NONE)

    # Snapshots.

    def freeze(self, leaf: Leaf) -> FrozenDict[Any, Any]:
        """Return the contents as an immutable value, which is the same object until they change."""
        made: FrozenDict[Any, Any] | None = self._frozen
        if made is not None and (self._log or self._stale):
            made = self._moved_on(made, leaf)
        if made is None:
            self._hints = {}
            made = FrozenDict(
                {key: self._freeze_value(key, value, leaf) for key, value in self.items()}
            )
        self._frozen, self._stale, self._log, self._gone = made, {}, {}, {}
        return made

    def anew(self, leaf: Leaf) -> FrozenDict[Any, Any]:
        """Return the contents as an immutable value, ignoring which changes were reported."""
        made: FrozenDict[Any, Any] | None = self._frozen
        if (
            made is not None
            and len(made) == len(self)
            and all(map(is_, self, made))
            and all(map(is_, self.values(), made.values()))
        ):
            return made
        return FrozenDict({key: freeze_part_anew(value, self, leaf) for key, value in self.items()})

    def _moved_on(self, made: FrozenDict[Any, Any], leaf: Leaf) -> FrozenDict[Any, Any] | None:
        """Apply the changes to the last snapshot.

        None if there are many, or some were not reported.
        """
        if is_much(len(self._log), len(self)):
            return None
        gone = [key for key, is_new in self._log.items() if is_new]
        put = {key: self._freeze_value(key, self[key], leaf) for key in self._log if key in self}
        for value in self._stale.values():
            put |= {key: freeze_part(value, self, leaf) for key in self._keys(value)}
        made = made.changed(put, gone)
        return made if len(made) == len(self) else None

    def _freeze_value(self, key: Any, value: Any, leaf: Leaf) -> Any:
        """Return the frozen form of a value, and remember its key if the two differ."""
        if key.__class__ not in EXACT:
            check_objects(key, "as a key, a dictionary in an object that is tracked")
        found = freeze_part(value, self, leaf)
        if found is not value:
            self._hints[id(value)] = key
        return found

    def _keys(self, value: Any) -> list[Any]:
        """Return the keys of a value that changed itself."""
        hint = self._hints.get(id(value), NONE)
        if self._counts.get(id(value)) == 1 and hint is not NONE and self.get(hint) is value:
            return [hint]
        return [key for key, each in self.items() if each is value]

    def _values(self) -> Iterable[Any]:
        return self.values()
