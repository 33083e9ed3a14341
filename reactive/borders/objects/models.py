"""The snapshots of pydantic models: what a model does with its own storage, of one that is frozen.

    row.model_dump(), row.model_dump_json()     of a model with the same values, lists as lists
    row.model_copy(update=...)                  such a model, which is in no table

A snapshot holds a `FrozenList` where the model has a list, which pydantic does not know, and
pydantic's copies write into `__dict__`, past what refuses assignments.

Cost: O(values), of each call.
"""

from __future__ import annotations

from typing import Any

from reactive.engine.collections.frozen_dict import FrozenDict
from reactive.engine.collections.frozen_list import FrozenList
from reactive.engine.collections.frozen_set import FrozenSet


def methods() -> dict[str, Any]:
    """What the class of snapshots has in the place of methods of the model."""
    return {"model_copy": _copy, "model_dump": _dump, "model_dump_json": _dump_json}


def give_storage(row: Any) -> None:
    """Give a new instance what pydantic expects of each."""
    object.__setattr__(row, "__pydantic_fields_set__", set(type(row).model_fields))
    object.__setattr__(row, "__pydantic_extra__", None)
    object.__setattr__(row, "__pydantic_private__", {})


def _copy(row: Any, **given: Any) -> Any:
    """A model of these values, which may be changed, and is in no table."""
    return _model(row).model_copy(**given)


def _dump(row: Any, **given: Any) -> Any:
    return _model(row).model_dump(**given)


def _dump_json(row: Any, **given: Any) -> Any:
    return _model(row).model_dump_json(**given)


def _model(row: Any) -> Any:
    kind = vars(type(row))["__reactive_twin__"]
    made = object.__new__(kind)
    give_storage(made)
    fields = kind.model_fields
    vars(made).update({n: _plain(value) for n, value in vars(row).items() if n in fields})
    return made


def _plain(value: Any) -> Any:
    """A value as the model has it."""
    if isinstance(value, FrozenList):
        return [_plain(each) for each in value]
    if isinstance(value, FrozenDict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, FrozenSet):
        return {_plain(each) for each in value}
    is_row = "__reactive_twin__" in vars(type(value)) and hasattr(value, "__pydantic_fields_set__")
    return _model(value) if is_row else value
