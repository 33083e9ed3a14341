"""Functions of JSON in SQLite: texts, which are read at each call.

    json(' [1, 2 ]')             '[1,2]'       extracted('{"a": [1]}', "$.a[0]")     1
    part('{"a": "b"}', "a")      '"b"'         value_at('{"a": "b"}', "a")           'b'

A part of a text keeps its spelling: `1.0e2` is not rewritten. Source: https://sqlite.org/json1.html

Functions of SQLite that change JSON: JSON_SET and its kin, JSON_REMOVE, JSON_PATCH.

    Edit("set")('{"a": 1}', "$.b[0]", 2)       '{"a":1,"b":[2]}'
    removed('[1, 2, 3]', "$[0]", "$[0]")       '[3]'
    patched('{"a": 1, "b": 2}', '{"a": null}') '{"b":2}'

An inserted value is not searched by later paths. Source: https://sqlite.org/json1.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from optimizer.record import record
from reactive.languages.sql.sqlite.values import GREATEST, LEAST, characters

REPLACED = "replaced"
"""The kind of a part that has another value in its place."""
DEEPEST = 200
"""Arrays and objects inside of each other."""

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<mark>[][{},:])"
    r'|(?P<text>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))"
    r"|(?P<word>null|true|false))"
)
_ESCAPED = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u(.{4})|\\(.)"
)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTED = {'"': '\\"', "\\": "\\\\", **{letter: f"\\{name}" for name, letter in _LETTERS.items()}}
STEP = re.compile(r'\.(?:"([^"]*)"|([^".[][^.[]*))|\[(?:([0-9]+)|#(?:-([0-9]+))?)\]', re.DOTALL)


@dataclass(slots=True)
class Node:
    """A value inside of a text: its kind, how it is spelled, and what it consists of."""

    kind: str
    spelled: str = ""
    labels: list[str] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    added: dict[str, int] = field(default_factory=dict)
    """The places of added labels, by their text."""
    places: dict[str, int] = field(default_factory=dict)
    """The first place of each label among the first `looked_at`."""
    looked_at: int = 0
    is_longer: bool = False
    """True if parts were added."""
    is_gone: bool = False
    """True if it was removed; an object still has its label."""
    new: Any = None
    """The value that was put into its place."""

    def __str__(self) -> str:
        if self.kind == "array":
            return f"[{','.join([str(part) for part in self.parts if not part.is_gone])}]"
        if self.kind == "object":
            pairs = zip(self.labels, self.parts, strict=True)
            shown = [f"{label}:{part}" for label, part in pairs if not part.is_gone]
            return f"{{{','.join(shown)}}}"
        if self.kind == REPLACED:
            return as_json(self.new)
        return self.spelled

    def place_of(self, label: str) -> int | None:
        """Return the first place of a label of an object; None if it has none."""
        for place in range(self.looked_at, len(self.labels)):
            self.places.setdefault(self.labels[place], place)
        self.looked_at = len(self.labels)
        return self.places.get(label)

    def hold(self, pairs: Sequence[tuple[str, Node]]) -> None:
        """Replace the labels and parts of an object."""
        self.labels, self.parts = [label for label, _ in pairs], [part for _, part in pairs]
        self.places, self.looked_at = {}, 0

    def value(self) -> Any:
        """Return the value of SQL; of an array or object its text."""
        match self.kind:
            case "null":
                return None
            case "true" | "false":
                return int(self.kind == "true")
            case "integer":
                whole = int(self.spelled)
                return whole if LEAST <= whole <= GREATEST else float(whole)
            case "real":
                return float(self.spelled)
            case "text":
                return _ESCAPED.sub(_unescape_letter, self.spelled[1:-1]).partition("\0")[0]
            case _:
                return str(self)


def _unescape_letter(found: re.Match[str]) -> str:
    """Return the letter of an escape; half of a surrogate pair becomes U+FFFD."""
    high, low, code, letter = found.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code:
        made = chr(int(code, 16))
        return "\ufffd" if "\ud800" <= made <= "\udfff" else made
    return _LETTERS.get(letter, letter)


class _JsonReader:
    """The reader of one text."""

    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0

    def parse(self) -> Node:
        """Return the node of the whole text; refuse letters behind it."""
        made = self._node(self._next(), 0)
        if self._text[self._place :].strip(" \t\n\r"):
            raise ValueError("malformed JSON")
        return made

    def _next(self) -> re.Match[str]:
        """Return the next token, and go past it; refuse a text without one."""
        found = _TOKEN.match(self._text, self._place)
        if found is None:
            raise ValueError("malformed JSON")
        self._place = found.end()
        return found

    def _node(self, token: re.Match[str], depth: int) -> Node:
        """Return the node that a token begins; refuse malformed and too deep JSON."""
        spelled = token[token.lastgroup or 0] if token["number"] is None else token["number"]
        if token["mark"] is None:
            if token["number"] is not None:
                return Node("real" if token["real"] else "integer", spelled)
            return Node("text" if token["text"] is not None else spelled, spelled)
        if spelled not in ("[", "{"):
            raise ValueError("malformed JSON")
        if depth == DEEPEST:
            raise ValueError(f"cannot read JSON: it is nested deeper than {DEEPEST}")
        made = Node("array" if spelled == "[" else "object")
        end, token = "]" if spelled == "[" else "}", self._next()
        if token["mark"] == end:
            return made
        while True:
            if end == "}":
                if token["text"] is None or self._next()["mark"] != ":":
                    raise ValueError("malformed JSON")
                made.labels.append(token["text"])
                token = self._next()
            made.parts.append(self._node(token, depth + 1))
            mark = self._next()["mark"]
            if mark == end:
                return made
            if mark != ",":
                raise ValueError("malformed JSON")
            token = self._next()


def parse_json(value: Any) -> Node:
    """Return the value that a text spells.

    Raises
    ------
    ValueError: the text is not JSON.
    """
    return _JsonReader(characters(value).partition("\0")[0]).parse()


def at(node: Node, path: Any) -> Node | None:
    """Return the part at a path; None if there is none, or the path is NULL.

    Raises
    ------
    ValueError: the path is none, as far as it was followed.
    """
    if path is None:
        return None
    text = characters(path).partition("\0")[0]
    if not text.startswith("$"):
        raise ValueError(f"JSON path error near {text!r}")
    place = 1
    while place < len(text) and node.kind != REPLACED:
        wanted = "object" if text[place] == "." else "array"
        if text[place] == "." and node.kind != wanted:
            return None
        if text.startswith("[#", place) and node.kind != wanted:
            return None
        found = STEP.match(text, place)
        if found is None:
            raise ValueError(f"JSON path error near {text[place:]!r}")
        if node.kind != wanted:
            return None
        inner = step(node, found)
        if inner is None:
            return None
        node, place = inner, found.end()
    return node if place == len(text) else None


def step(node: Node, found: re.Match[str]) -> Node | None:
    """Return the part of a node that one step of a path leads to; None if there is none."""
    label, bare, number, back = found.groups()
    if node.kind == "object":
        name = bare if label is None else label
        place = node.place_of(f'"{name}"')
        place = node.added.get(name) if place is None else place
        return None if place is None else node.parts[place]
    left = [part for part in node.parts if not part.is_gone]
    count = len(left)
    if node.is_longer and (back or number):  # where SQLite 3.40 counts from an added part
        raise ValueError(f"cannot find {found[0]} in an array that the same call makes longer")
    index = int(number) if number is not None else count - int(back or 0)
    return left[index] if 0 <= index < count else None


# The functions.


class Json(str):
    """A text that is known to be JSON, in the arguments of a function that asks for it."""

    __slots__ = ()


def as_json(value: Any) -> str:
    """Return a value as JSON; a text that is known to be JSON as it is."""
    return str(value) if isinstance(value, Json) else write_json(value)


@record
class Told:
    """A function whose result is known to be JSON."""

    function: Any

    def __call__(self, *given: Any) -> Any:
        if hasattr(self.function, "mark_json"):
            return self.function.mark_json(*given)
        made = self.function(*given)
        return Json(made) if isinstance(made, str) else made


def extracted_json(value: Any, *paths: Any) -> Any:
    """Return what JSON_EXTRACT does, with arrays and objects marked as JSON."""
    found = extracted(value, *paths)
    if len(paths) > 1 or not isinstance(found, str):
        return None if found is None else Json(found) if isinstance(found, str) else found
    kind = type_at(value, paths[0])
    return Json(found) if kind in ("array", "object") else found


def json(value: Any) -> str | None:
    """Return the text without spaces (JSON); None of NULL.

    >>> json('{"a": [1.0e2, "\\\\u00e9"] }'), json(12)
    ('{"a":[1.0e2,"\\\\u00e9"]}', '12')
    """
    return None if value is None else str(parse_json(value))


def valid(value: Any) -> int:
    """Return 1 for a text that is JSON, else 0, also for NULL (JSON_VALID)."""
    if value is None:
        return 0
    try:
        parse_json(value)
    except ValueError as error:
        if str(error) != "malformed JSON":
            raise
        return 0
    return 1


def type_at(value: Any, path: Any = "$") -> str | None:
    """Return the kind of the part at a path (JSON_TYPE); None if there is none."""
    found = None if value is None else at(parse_json(value), path)
    return None if found is None else found.kind


def length_at(value: Any, path: Any = "$") -> int | None:
    """Return JSON_ARRAY_LENGTH: 0 for a value that is not an array, None for no value."""
    found = None if value is None else at(parse_json(value), path)
    if found is None:
        return None
    return len(found.parts) if found.kind == "array" else 0


def extracted(value: Any, *paths: Any) -> Any:
    """Return the value at a path; of several paths an array (JSON_EXTRACT).

    >>> extracted('{"a": [1, "x"]}', "$.a[#-1]"), extracted('{"a": [1, "x"]}', "$.a[1]", "$.b")
    ('x', '["x",null]')
    """
    if value is None:
        return None
    node = parse_json(value)
    found = [at(node, path) for path in paths]
    if len(paths) > 1:
        return f"[{','.join('null' if each is None else str(each) for each in found)}]"
    return None if found[0] is None else found[0].value()


def _follow_arrow(value: Any, path: Any) -> Node | None:
    """Return the part at a path, a label or an index; None if absent, or an argument is NULL."""
    if value is None:
        return None
    node = parse_json(value)
    if path is None:
        return None
    text = characters(path)
    if not text.startswith("$"):
        if "0" <= text[:1] <= "9":
            text = f"$[{text}]"
        else:
            text = f"${text}" if text.startswith("[") else f"$.{text}"
    return at(node, text)


def part(value: Any, path: Any) -> str | None:
    """Return the operator `->`: the part as JSON, by path, label or index; None if absent."""
    found = _follow_arrow(value, path)
    return None if found is None else str(found)


def value_at(value: Any, path: Any) -> Any:
    """Return the operator `->>`: the part as a value."""
    found = _follow_arrow(value, path)
    return None if found is None else found.value()


def write_json(value: Any) -> str:
    """Write a value as JSON (JSON_QUOTE); raise for a blob.

    >>> write_json('say "hé"'), write_json(1.0), write_json(None)
    ('"say \\\\"hé\\\\""', '1.0', 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, bytes):
        raise ValueError("JSON cannot hold BLOB values")
    if isinstance(value, str):
        letters = (_QUOTED.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value)
        return f'"{"".join(letters)}"'
    return characters(value)


@record
class Quoted:
    """A function that makes JSON of values, and takes JSON among them as it is."""

    kind: str

    def __call__(self, *values: Any) -> str:
        made = list(map(as_json, values))
        if self.kind == "quote":
            return made[0]
        if self.kind == "array":
            return f"[{','.join(made)}]"
        if not all(isinstance(label, str) for label in values[::2]):
            raise ValueError("json_object() labels must be TEXT")
        labels = map(write_json, values[::2])
        return f"{{{','.join(f'{k}:{v}' for k, v in zip(labels, made[1::2], strict=True))}}}"


@record
class Edit:
    """JSON_SET; JSON_INSERT, only if the path is absent; JSON_REPLACE, only if it exists."""

    kind: Literal["set", "insert", "replace"]

    def __call__(self, value: Any, *given: Any) -> Any:
        made = self.mark_json(value, *given)
        return str(made) if isinstance(made, Json) else made

    def mark_json(self, value: Any, *given: Any) -> Any:
        """Return the result, which is known to be JSON unless it is one of the values."""
        if value is None:
            return None
        root = parse_json(value)
        for path, new in zip(given[::2], given[1::2], strict=True):
            found, is_new = _find_or_add(root, path, adds=self.kind != "replace")
            if found is None or (self.kind == "insert" and not is_new):
                continue
            found.kind, found.new = REPLACED, new
        return root.new if root.kind == REPLACED else Json(root)


def _find_or_add(node: Node, path: Any, *, adds: bool) -> tuple[Node | None, bool]:
    """Return the part at a path (None if there is none), and True if it was added."""
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
    """Return the end of the longest prefix of a path that leads to a part of the node."""
    place = 1
    while (found := STEP.match(text, place)) is not None:
        wanted = "object" if text[place] == "." else "array"
        inner = step(node, found) if node.kind == wanted else None
        if inner is None:
            break
        node, place = inner, found.end()
    return place


def _add(node: Node, found: re.Match[str], part: Node) -> bool:
    """Append a part to an object or array, by a step; False if the step cannot lead there."""
    label, bare, number, back = found.groups()
    if number is None and not found[0].startswith("["):
        if node.kind != "object":
            return False
        name = bare if label is None else label
        node.added[name] = len(node.parts)
        node.labels.append(write_json(name))
    elif node.kind != "array" or back or (number and int(number) != len(node.parts)):
        return False
    node.parts.append(part)
    node.is_longer = True
    return True


def _branch(text: str, place: int) -> tuple[Node, Node] | None:
    """Return new nodes for the rest of a path, and the last one; None if impossible."""
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
    """Remove the parts at some paths, one after another (JSON_REMOVE).

    Return NULL if the value or a path is NULL, or if the whole value is removed.
    """
    if value is None:
        return None
    root = parse_json(value)
    for path in paths:
        if path is None:
            return None
        found = at(root, path)
        if found is not None:
            found.is_gone = True
    return None if root.is_gone else str(root)


def patched(value: Any, patch: Any) -> Any:
    """Return JSON_PATCH: the merge of RFC 7396, where null removes; NULL if an argument is NULL."""
    root = None if value is None else parse_json(value)
    if root is None or patch is None:
        return None
    return str(_merge_patch(root, parse_json(patch)))


def _merge_patch(target: Node, patch: Node) -> Node:
    """Return `target` after a patch (JSON_PATCH); an object is changed in place."""
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
            made = None if part.kind == "null" else _merge_patch(target.parts[place], part)
            if made is not target.parts[place]:
                changed[place] = made
    parts = [changed.get(place, part) for place, part in enumerate(target.parts)]
    pairs = zip(target.labels, parts, strict=True)
    target.hold([(label, part) for label, part in pairs if part is not None] + more)
    return target


def _without_nulls(node: Node) -> Node:
    """Remove members that are null from an object, also from objects in it; return the node."""
    if node.kind == "object":
        pairs = zip(node.labels, node.parts, strict=True)
        node.hold([(k, _without_nulls(part)) for k, part in pairs if part.kind != "null"])
    return node
