"""A part as bytes: its plan without what only the driver needs.

What a callable captured, where it stands and what it is equal to serve checks and messages; a
lifted one is its expression. What is left goes by cloudpickle, so that lambdas and the callables of
a script can be sent.
"""

from __future__ import annotations

import dataclasses
import io
from typing import Any

from pyspark import cloudpickle as untyped

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Lifted
from reactive.engine.operators.accumulators import MonoidAccumulator, UserAccumulator
from spark_backend.codec.codec import main_classes

cloudpickle: Any = untyped


def serialized(node: Any) -> bytes:
    """A plan, several that share nodes, or what has some, as bytes that `pickle.loads` can read.

    Raises
    ------
    Exception: of any kind; a callable holds something that cannot be pickled.
    """
    file = io.BytesIO()
    pickler: Any = _Pickler
    pickler(file, 5).dump(node)
    return file.getvalue()


def obstacle(node: plan.Node) -> str | None:
    """Why a plan cannot be sent, if it cannot."""
    try:
        serialized(node)
    except Exception as error:
        return f"it cannot be sent to Spark: {error}"
    return None


def serialized_classes() -> dict[str, bytes]:
    """The classes of the script that is run, each on its own; without classes that cannot be
    pickled."""
    found = {}
    for name, kind in main_classes().items():
        try:
            found[name] = cloudpickle.dumps(kind)
        except Exception:  # a class that no row is of may hold anything
            continue
    return found


class _Pickler(untyped.Pickler):
    """Equality of callables and constants is by identity where they arrive."""

    def reducer_override(self, value: Any) -> Any:
        match value:
            case Opaque():
                given = (value.function, value.parameters, value.name, None, (), id(value))
                return Opaque, (*given, value.role, value.is_part)
            case Lifted():
                return Lifted, (value.body, value.names, (), value.parameters)
            case Constant():
                return Constant, (value.value, id(value), value.name)
            case UserAccumulator() | MonoidAccumulator():
                return type(value), _fields(dataclasses.replace(value, meaning=None))
            case plan.Node():
                return type(value), _fields(value)
            case _:
                return cloudpickle.Pickler.reducer_override(self, value)


def _fields(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, f.name) for f in dataclasses.fields(value) if f.init)
