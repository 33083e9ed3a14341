"""Creation of sinks: choose the target of a view, and the feed of its changes.

a path or a table    files, written by the offload of the database
a function           called with each batch, from an outbox
a `SinkTarget`       used as it is
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.declared_kinds import binding_types
from optimizer.plans.fingerprint import fingerprint
from reactive.api.internal_interface import channel_of, check_open, contents_of, engine_of, node_of
from reactive.api.subscriptions.listening import NamedSubscription
from reactive.api.subscriptions.observe import Subscription
from reactive.api.subscriptions.subscribe import listen
from reactive.borders.sinks.durable_outbox import (
    CalledTarget,
    DurableOutbox,
    FrameTarget,
    MemoryOutbox,
    Outbox,
    SinkTarget,
    ToldTarget,
)
from reactive.borders.sinks.gathered_changes import GatheredChanges
from reactive.borders.sinks.sink import ChangeFeed, FollowedChanges, Sink
from reactive.engine.collections.zset import Pair
from reactive.engine.dataflow.delta import Delta
from reactive.engine.runtime import background
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.engine.remote.remote_operator import RemoteOperator
    from reactive.engine.transactions.engine import Engine

Mode: TypeAlias = Literal["upsert", "changes"]
"""The contents of a table or folder: the rows of a view, or their changes by batch."""
Trigger: TypeAlias = str | float | None
"""The time that changes wait: seconds, or text such as `"10s"`.

None: until `flush`; `"commit"`: not at all.
"""
EACH = "commit"
METHODS = ("open", "difference", "stage", "deliver")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a written view, named as in `View.write_to`."""

    mode: Mode = "upsert"
    key: tuple[str, ...] = ()
    row_type: Any = None


def write_to(
    view: Any, target: Any, mode: Mode, trigger: Trigger, key: str | Iterable[str], row_type: Any
) -> Sink:
    """Create the sink of `View.write_to`.

    Raises `PlanError` for options that do not fit together.
    """
    interval = _trigger_seconds(trigger)
    options = SinkOptions(mode, (key,) if isinstance(key, str) else tuple(key), row_type)
    if mode not in ("upsert", "changes"):
        raise PlanError(f'mode={mode!r} is none of "upsert" and "changes"')
    if mode == "changes" and options.key:
        raise PlanError(
            f"key={key!r:.50} is not read with mode='changes': each batch has its own rows there\n"
            '  leave it out, or write the rows of now: mode="upsert"'
        )
    engine = engine_of(view)
    if _is_target(target):
        if options != SinkOptions():
            raise PlanError(
                "mode=, key= and row_type= are not read beside a Target, which knows them\n"
                "  give them to it: RowsFolder(path, key=..., row_type=...)"
            )
        made: SinkTarget = target
    elif isinstance(target, str | os.PathLike):
        target = target if isinstance(target, str) else str(Path(target).absolute())
        made = _offload(engine, "files are written by pyarrow").target(target, options)
    else:
        raise PlanError(
            f"write_to takes a path, the name of a table, or a Target, not {target!r:.100}\n"
            "  changes_to takes a function that is called with each batch"
        )
    return _sink(view, f"of {channel_of(view)} to {target!r:.200}", made, interval, trigger == EACH)


@dataclass(frozen=True, slots=True)
class Keeping:
    """The options of `View.changes_to` about the storage of delivered rows."""

    durable: bool | None = None
    migrate: bool = False
    instead: str = "keep it in the process: durable=False"


def changes_to(
    view: Any,
    function: Any,
    trigger: Trigger,
    name: str | None,
    row_type: Any,
    keeping: Keeping = Keeping(),
    *,
    frames: bool,
) -> Sink:
    """Create the sink of `View.changes_to`.

    Raises `PlanError` for options that do not fit together.
    """
    interval = _trigger_seconds(trigger)
    if not callable(function):
        raise PlanError(
            f"changes_to takes a function (number, changes), not {function!r:.100}\n"
            "  write_to takes a path, a table or a Target"
        )
    engine = engine_of(view)
    called = name or view.name
    to = getattr(function, "__qualname__", type(function).__name__)
    text = f"of {channel_of(view)} to {to if called is None else repr(called)}"
    target: SinkTarget
    if frames or getattr(function, "takes_frames", False):
        if keeping != Keeping():
            raise PlanError(
                "durable= and migrate= are not read by a function of frames, whose batches are "
                "files\n  leave them out: SparkOffload(checkpoint=...) keeps what it was told"
            )
        target = _offload(engine, "a DataFrame is of Spark").frame_target(
            function, called, row_type
        )
    else:
        target = CalledTarget(function, _outbox(view, called, row_type, keeping))
    return _sink(view, text, target, interval, trigger == EACH)


def subscribe_sink(
    view: Any,
    name: str,
    callback: Callable[[Delta[Any]], object],
    *,
    on: Any,
    every: float | None,
    row_type: Any,
    snapshot: bool,
    migrate: bool,
) -> NamedSubscription[Any]:
    """Subscribe under a name, under which a durable database stores the delivered rows.

    Parameters
    ----------
    on, every: the executor of the callback, and the seconds between two calls.

    Raises
    ------
    PlanError: a subscription of the name exists; or the database is read-only.
    """
    check_open(view)
    engine = engine_of(view)
    if engine.journal is not None and not engine.journal.writes:
        raise PlanError(
            f"cannot subscribe as {name!r}: the database is open for reading alone, and what a "
            "subscription was told is kept in its file\n  leave out name="
        )
    _check_single(engine, name)
    outbox = _outbox(view, name, row_type, Keeping(None, migrate, "leave out name="))
    channel = channel_of(view)
    target = ToldTarget(callback, outbox, name, channel.key, channel.columns, snapshot=snapshot)
    sink = _sink(view, f"of {channel} to subscription {name!r}", target, every, False)
    if every is None:
        sink._follow_commits(on)
    else:
        sink._begin()
    return NamedSubscription(name, sink)


def _trigger_seconds(trigger: Trigger) -> float | None:
    """Return the seconds of a trigger; None for `None` and `"commit"`.

    Raises
    ------
    PlanError: it is not an interval.
    """
    if trigger is None or trigger == EACH:
        return None
    otherwise = "None writes when you flush, 'commit' after each commit"
    return background.seconds(trigger, otherwise=otherwise)


def _is_target(target: Any) -> bool:
    return all(callable(getattr(target, method, None)) for method in METHODS)


def _offload(engine: Engine, why: str) -> Any:
    """Return the offloading of a database. Raises `OffloadError` if it has none."""
    if not engine.offloading.is_possible:
        raise OffloadError(
            f"this database cannot make the target: {why}\n"
            "  make it with Database(offload=SparkOffload(...)), or give write_to a Target, such "
            "as spark_backend.ChangesFolder(path)"
        )
    return engine.offloading.need()


def _outbox(view: Any, name: str | None, row_type: Any, keeping: Keeping) -> Outbox:
    """Return the outbox of a function.

    Raises `PlanError` for a `row_type` if the outbox is in memory.

    It is in the file of a durable database, else in the checkpoint if there is one, else in memory.
    """
    engine = engine_of(view)
    if _is_kept_durably(engine, name, keeping):
        assert name is not None
        of = _annotation(channel_of(view).plan) if row_type is None else row_type
        return DurableOutbox(engine, name, of, migrate=keeping.migrate, instead=keeping.instead)
    kept: Outbox | None = None
    if engine.offloading.is_possible:
        kept = engine.offloading.need().outbox(name, row_type)
    if kept is None and row_type is not None:
        raise PlanError(
            f"row_type={row_type!r:.50} is not read by a sink that keeps its batches in the process"
            "\n  leave it out; or have them kept: Database('shop.db'), or "
            "Database(offload=SparkOffload(checkpoint=...))"
        )
    return MemoryOutbox() if kept is None else kept


def _is_kept_durably(engine: Engine, name: str | None, keeping: Keeping) -> bool:
    """Return True if a sink of this name is kept in the file of the database.

    Raises `PlanError` if `durable=True` or `migrate=True` is impossible.
    """
    writes = engine.journal is not None and engine.journal.writes
    if keeping.durable is False or (keeping.durable is None and not writes):
        if keeping.migrate:
            raise PlanError(
                "migrate=True is not read by a sink that is not kept in a durable database\n"
                "  leave it out"
            )
        return False
    if not writes:
        why = "in memory" if engine.journal is None else "open for reading alone"
        raise PlanError(
            f"cannot make a durable sink: its database is {why}\n"
            "  give the database a path, Database('shop.db'), or leave out durable=True"
        )
    if not name:
        raise PlanError(
            "cannot keep in the file what a sink has told: it has no name to be found by after a "
            "restart\n"
            "  name the sink, changes_to(..., name='alerts'), or the view\n"
            "  to keep what it has told in the process, say durable=False"
        )
    _check_single(engine, name)
    return True


def _check_single(engine: Engine, name: str) -> None:
    """Raise if a running sink stores its delivered rows under the name."""
    for sink in engine.sinks:
        if getattr(sink._target, "kept_as", None) == name:
            raise PlanError(
                f"cannot make a second sink named {name!r}: the sink {sink.name} keeps what "
                "it has told under this name\n"
                "  stop() that one first, or give this one another name"
            )


def _sink(view: Any, name: str, target: SinkTarget, interval: float | None, is_each: bool) -> Sink:
    """Create the sink of a view. Raises `PlanError` if another sink has its name.

    interval: the seconds between two writes; None for none. is_each: True to write after each
    commit.
    """
    engine = engine_of(view)
    if any(sink.name == name for sink in engine.sinks):
        raise PlanError(f"the sink {name} is there already\n  stop() that one first")
    if callable(expect := getattr(target, "expect", None)):
        expect(_annotation(channel_of(view).plan))
    found = fingerprint(view.relation.plan)
    gathering = partial(_choose_feed, view, None if is_each else target)
    sink = Sink(engine, name, gathering, target, found, interval)
    if is_each:
        sink._follow_commits()
    return sink


def _annotation(node: plan.Node) -> Any:
    """Return the annotation of the rows of a query."""
    types = binding_types(node)
    return types[0] if len(types) == 1 else GenericAlias(tuple, types)


def _choose_feed(view: Any, target: SinkTarget | None, now: ChangeFeed | None) -> ChangeFeed:
    """Return the feed of the changes of a view: `now`, if it can continue.

    Rows are read where they are, if the target can read them there.
    """
    if now is None or not now.is_sure:
        check_open(view)
    elif view.closed:
        return now
    operator = _operator(view) if isinstance(target, FrameTarget) else None
    if operator is None:
        if isinstance(now, GatheredChanges):
            return now
        return GatheredChanges(
            engine_of(view).shaping, partial(_view_rows, view), partial(_listen_to_view, view)
        )
    is_same = isinstance(now, FollowedChanges) and now.operator is operator and not now.has_moved
    return now if now is not None and is_same else FollowedChanges(operator)


def _operator(view: Any) -> RemoteOperator | None:
    """Return the operator whose remote rows can be followed; None if they cannot."""
    source = node_of(view).inputs[0]
    return source.operator if source.is_remote and source.operator.is_followable else None


def _view_rows(view: Any) -> tuple[list[Pair], int]:
    return list(contents_of(view).items()), engine_of(view).version


def _listen_to_view(view: Any, callback: Callable[[Delta[Any]], object]) -> Subscription[Any]:
    check_open(view)
    subscription, _ = listen(engine_of(view), node_of(view), callback, view)
    return subscription
