"""JSON as values that do not change: objects as `FrozenObject`, arrays as tuples."""

from __future__ import annotations

import json
from typing import Any

from reactive.engine.collections.frozen_object import FrozenObject


def frozen_json(text: str) -> Any:
    """Return the value of a JSON text, with frozen collections.

    >>> frozen_json('{"tags": ["a", "b"]}')["tags"]
    ('a', 'b')
    """
    return _frozen(json.loads(text, object_hook=FrozenObject))


def _frozen(value: Any) -> Any:
    """The same with tuples in the place of lists, of which the parser makes none."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, FrozenObject):
        value._items = {name: _frozen(each) for name, each in value._items.items()}
    return value
