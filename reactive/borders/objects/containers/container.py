"""The common base of tracked lists, dictionaries and sets: their owners.

    order  <--  order.lines  <--  order.lines[3]         weak references to the owners

    order.lines[3].append(x)      runs through order: under the lock of its database, it calls the
                                  change of the list, keeps the undo, and marks `order.lines` at
                                  place 3 and `order` at `lines` as changed

A container that is in several objects, or several times in one, notifies all of them. One that was
removed notifies no owner: each change first checks whether an owner still holds it. Until the end
of the transaction that took it out, its changes are recorded there too, because the transaction may
restore it.

State:  for each container its owners, weakly, and the changes since its last snapshot.
Cost:   a change costs the notification of its owners.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol

from optimizer.expressions.knowledge import Foldable
from optimizer.kinds.fields import TRACKED, by_recent_class
from reactive.engine.collections.zset import EXACT

Undo = Callable[[], object]
Change = Callable[[], Undo | None]
"""Change something, and return its undo; None if nothing has changed."""
Leaf = Callable[[Any, Any], Any]
"""Return the form in a snapshot of a value that is no container; its container comes second."""
FEW, NOTED = 64, 8
"""The number of changes, plus one per `NOTED` values, that makes a snapshot be made anew."""


class Owner(Protocol):
    """An object that has containers, or a container."""

    def with_owners(self, found: dict[int, Any]) -> object:
        """Add the objects whose snapshots contain this one's, and itself if it is an object."""

    def holds(self, key: Hashable, value: Any) -> bool:
        """Return True if a value is still at a key of this owner."""

    def mark(self, key: Hashable, value: Any) -> None:
        """Mark a value of this owner as changed inside, and so all owners. This cannot fail."""

    def is_in_transaction(self) -> bool:
        """Return True if a transaction of a database with this object is open."""

    @staticmethod
    def change_all(objects: Sequence[Any], do: Change) -> None:
        """Run a change inside some objects, found by `with_owners`, as one commit.

        Inside a transaction, it becomes part of it. `do` is called once, under the locks of their
        databases; its undo is called if the transaction or the commit fails.
        """


class Container:
    """The base of tracked containers."""

    __slots__ = ()
    PLAIN: ClassVar[type]
    FROZEN: ClassVar[type]
    _counts: dict[int, int]
    _frozen: Any
    _owners: dict[tuple[int, Hashable], weakref.ref[Any]]
    _stale: dict[int, Any]

    def freeze(self, leaf: Leaf) -> Any:
        """Return the contents as an immutable value, which is the same object until they change."""
        raise NotImplementedError

    def anew(self, leaf: Leaf) -> Any:
        """Return the contents as an immutable value, ignoring which changes were reported."""
        raise NotImplementedError

    def forget(self) -> None:
        """Discard the last snapshot, so that the next one is made anew."""
        self._frozen, self._counts = None, {}  # type: ignore[misc]
        every = self._values()
        count_tracked(self._counts, every, 1)
        for value in every:
            if isinstance(value, Container):
                value.forget()

    def with_owners(self, found: dict[int, Any]) -> bool:
        """Add the owning objects; see `Owner`.

        Return True if an owner no longer holds this container, or one that contains it.
        """
        is_loose = False
        for number, reference in tuple(self._owners.items()):
            owner, key = reference(), number[1]
            if owner is None:
                self._owners.pop(number, None)
            elif not owner.holds(key, self):
                is_loose = True
            elif id(owner) not in found:
                is_loose |= owner.with_owners(found) is True
        return is_loose

    def holds(self, key: Hashable, value: Any) -> bool:
        """Return True if a value is in this container; see `Owner`."""
        return id(value) in self._counts

    def mark(self, key: Hashable, value: Any) -> None:
        """Mark a value of this container as changed inside; see `Owner`."""
        self._stale[id(value)] = value
        self._tell()

    def own(self, owner: Any, key: Hashable) -> None:
        """Add an owner."""
        self._owners[id(owner), key] = weakref.ref(owner)

    def follows_any(self) -> bool:
        """Return True if the container holds a value that reports its changes."""
        return bool(self._counts)

    def is_of(self, owner: Any, key: Hashable) -> bool:
        """Return True if `owner` is registered as an owner with this key."""
        found = self._owners.get((id(owner), key))
        return found is not None and found() is owner

    def _blank(self) -> None:
        """Initialize a new container."""
        self._frozen = None
        self._owners, self._stale, self._counts = {}, {}, {}  # type: ignore[misc]

    def _held_by(self) -> Iterator[tuple[Any, Hashable]]:
        """Yield the current owners, each with the key of this container."""
        return ((owner, key) for owner, key in self._owned_by() if owner.holds(key, self))

    def _owned_by(self) -> Iterator[tuple[Any, Hashable]]:
        """Yield the current owners, and recent former owners."""
        for number, reference in list(self._owners.items()):
            owner = reference()
            if owner is None:
                self._owners.pop(number, None)
            else:
                yield owner, number[1]

    def _may_return_to(self) -> dict[int, Any]:
        """Return the objects that a transaction may restore it into.

        Without any, forget former owners.
        """
        found: dict[int, Any] = {}
        seen, every = {id(self)}, [self]
        while every:
            for owner, _ in every.pop()._owned_by():
                if not isinstance(owner, Container):
                    if owner.is_in_transaction():
                        found[id(owner)] = owner
                elif id(owner) not in seen:
                    seen.add(id(owner))
                    every.append(owner)
        if not found:
            held = {(id(owner), key) for owner, key in self._held_by()}
            for number in self._owners.keys() - held:
                self._owners.pop(number, None)
        return found

    def _tell(self) -> None:
        """Notify the owners of a change."""
        for (_, key), reference in tuple(self._owners.items()):
            owner = reference()
            if owner is not None and owner.holds(key, self):
                owner.mark(key, self)

    def _change(self, do: Change) -> None:
        """Run a change as a commit of the objects that own the container; alone without owners."""
        found: dict[int, Any] = {}
        if self._owners and self.with_owners(found):
            found |= self._may_return_to()
        if found:
            objects = list(found.values())
            objects[0].change_all(objects, partial(self._run_change, do))
        else:
            do()

    def _run_change(self, do: Change) -> Undo | None:
        """Run a change, and return its undo; None if it changes nothing.

        Until the change is final, the undo keeps the removed objects tracked.
        """
        before = self._frozen
        undo = do()
        return None if undo is None else partial(_undo_keeping, undo, before)

    def _values(self) -> Iterable[Any]:
        """Return the values of the container, without keys."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.PLAIN, (self.PLAIN(self),)


@by_recent_class(64)
def follows(kind: Any) -> bool:
    """Return True if values of a class report their changes to their owners."""
    return issubclass(kind, Container) or hasattr(kind, TRACKED)


def is_much(changes: int, size: int) -> bool:
    """Return True if making a snapshot anew is faster than changing the last one."""
    return changes > FEW + size // NOTED


def count_tracked(counts: dict[int, int], values: Iterable[Any], by: int) -> None:
    """Add `by` to the counts of the values that report their changes; drop counts of 0."""
    for value in values:
        if value.__class__ not in EXACT and follows(value.__class__):
            number = id(value)
            now = counts.get(number, 0) + by
            if now > 0:
                counts[number] = now
            else:
                counts.pop(number, None)


def to_tracked(value: Any) -> Any:
    """Convert a plain or frozen container to a tracked one; other values are returned unchanged."""
    kind = value.__class__
    if kind is list or kind is dict or kind is set or issubclass(kind, Foldable):
        for each in Container.__subclasses__():
            if kind is each.PLAIN or kind is each.FROZEN:
                return each(value)  # type: ignore[call-arg]
    return value


def take_value(value: Any, owner: Container) -> Any:
    """Convert a value to be put into a container: plain containers become tracked.

    Raises
    ------
    ValueError: the value contains the container.
    """
    if value.__class__ in EXACT:
        return value
    value = to_tracked(value)
    if isinstance(value, Container) and _is_inside(value, owner):
        raise ValueError(
            f"a {value.PLAIN.__name__} in an object that is tracked cannot hold itself: a snapshot "
            "of it would not end\n  put in a copy"
        )
    return value


def freeze_part(value: Any, owner: Container, leaf: Leaf) -> Any:
    """Return the form of a contained value in a snapshot.

    A plain value stays, a container is frozen, and `leaf` converts any other value.
    """
    if value.__class__ in EXACT:
        return value
    if isinstance(value, Container):
        return value.freeze(leaf)
    return leaf(value, owner)


def freeze_part_anew(value: Any, owner: Container, leaf: Leaf) -> Any:
    """Return the form of a contained value in a snapshot, made anew."""
    return value.anew(leaf) if isinstance(value, Container) else freeze_part(value, owner, leaf)


def _undo_keeping(undo: Undo, before: Any) -> None:
    """Undo a change.

    `before` is not read: the `partial` keeps the old snapshot alive, so that its objects stay
    tracked.
    """
    undo()


def _is_inside(value: Container, owner: Any) -> bool:
    """Return True if a container is, or is in, another container."""
    if owner is value:
        return True
    if not isinstance(owner, Container):
        return False
    return any(_is_inside(value, each) for each, _ in owner._held_by())
