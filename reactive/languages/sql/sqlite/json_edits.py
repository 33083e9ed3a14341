"""Functions of SQLite that change JSON: JSON_SET and its kin, JSON_REMOVE, JSON_PATCH.

    Edit("set")('{"a": 1}', "$.b[0]", 2)       '{"a":1,"b":[2]}'
    removed('[1, 2, 3]', "$[0]", "$[0]")       '[3]'
    patched('{"a": 1, "b": 2}', '{"a": null}') '{"b":2}'

A value that was put into its place is looked into no more. Source: https://sqlite.org/json1.html
"""

from __future__ import annotations

import re
from typing import Any, Literal

from optimizer.record import record
from reactive.languages.sql.sqlite.json import REPLACED, STEP, Json, Node, at, quoted, read, step
from reactive.languages.sql.sqlite.values import characters


@record
class Edit:
    """JSON_SET, JSON_INSERT of what is not there, JSON_REPLACE of what is."""

    kind: Literal["set", "insert", "replace"]

    def __call__(self, value: Any, *given: Any) -> Any:
        made = self.told(value, *given)
        return str(made) if isinstance(made, Json) else made

    def told(self, value: Any, *given: Any) -> Any:
        """The result, which is known to be JSON unless it is one of the values."""
        if value is None:
            return None
        root = read(value)
        for path, new in zip(given[::2], given[1::2], strict=True):
            found, is_new = _located(root, path, adds=self.kind != "replace")
            if found is None or (self.kind == "insert" and not is_new):
                continue
            found.kind, found.new = REPLACED, new
        return root.new if root.kind == REPLACED else Json(root)


def _located(node: Node, path: Any, *, adds: bool) -> tuple[Node | None, bool]:
    """The part at a path, and True if it was added; None if there is none."""
    if path is None:
        return None, False
    if not adds:
        return at(node, path), False
    text = characters(path).partition("\0")[0]
    place = max(1, _end_of_known(node, text))
    known = at(node, text[:place]) if text.startswith("$") else at(node, text)
    if known is None or place >= len(text):
        return at(node, text), False
    last = STEP.match(text, place)
    if last is None or known.kind != ("object" if text[place] == "." else "array"):
        return at(node, text), False
    made = _branch(text, last.end())
    return (made[1], True) if made is not None and _add(known, last, made[0]) else (None, False)


def _end_of_known(node: Node, text: str) -> int:
    """The length of the longest beginning of a path that leads to a part."""
    place = 1
    while (found := STEP.match(text, place)) is not None:
        wanted = "object" if text[place] == "." else "array"
        inner = step(node, found) if node.kind == wanted else None
        if inner is None:
            break
        node, place = inner, found.end()
    return place


def _add(node: Node, found: re.Match[str], part: Node) -> bool:
    """Add a part behind the last one; False if a step does not lead there."""
    label, bare, number, back = found.groups()
    if number is None and not found[0].startswith("["):
        if node.kind != "object":
            return False
        name = bare if label is None else label
        node.added[name] = len(node.parts)
        node.labels.append(quoted(name))
    elif node.kind != "array" or back or (number and int(number) != len(node.parts)):
        return False
    node.parts.append(part)
    node.is_longer = True
    return True


def _branch(text: str, place: int) -> tuple[Node, Node] | None:
    """New parts for the rest of a path, and the last of them; None if they cannot be."""
    if place == len(text):
        made = Node("null", "null")
        return made, made
    found = STEP.match(text, place)
    if text[place] != "." and not text.startswith("[0]", place):
        return None
    if found is None:
        raise ValueError(f"JSON path error near {text[place:]!r}")
    inner = _branch(text, found.end())
    made = Node("object" if text[place] == "." else "array")
    if inner is None or not _add(made, found, inner[0]):
        return None
    return made, inner[1]


def removed(value: Any, *paths: Any) -> Any:
    """JSON_REMOVE: the text without the parts at some paths, one after another."""
    if value is None:
        return None
    root = read(value)
    for path in paths:
        if path is None:
            return None
        found = at(root, path)
        if found is not None:
            found.is_gone = True
    return None if root.is_gone else str(root)


def patched(value: Any, patch: Any) -> Any:
    """JSON_PATCH: the merge of RFC 7396, in which null removes."""
    root = None if value is None else read(value)
    if root is None or patch is None:
        return None
    return str(_merged(root, read(patch)))


def _merged(target: Node, patch: Node) -> Node:
    if patch.kind != "object":
        return patch
    if target.kind != "object":
        return _without_nulls(patch)
    changed: dict[int, Node | None] = {}  # of a label that is there twice the first one counts
    more: list[tuple[str, Node]] = []
    for label, part in zip(patch.labels, patch.parts, strict=True):
        place = target.place_of(label)
        if place is None:
            more += [(label, _without_nulls(part))] if part.kind != "null" else []
        elif place not in changed:
            made = None if part.kind == "null" else _merged(target.parts[place], part)
            if made is not target.parts[place]:
                changed[place] = made
    parts = [changed.get(place, part) for place, part in enumerate(target.parts)]
    pairs = zip(target.labels, parts, strict=True)
    target.hold([(label, part) for label, part in pairs if part is not None] + more)
    return target


def _without_nulls(node: Node) -> Node:
    if node.kind == "object":
        pairs = zip(node.labels, node.parts, strict=True)
        node.hold([(k, _without_nulls(part)) for k, part in pairs if part.kind != "null"])
    return node
