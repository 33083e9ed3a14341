"""A program of two files, and what its variables may hold after each of some edits."""

from __future__ import annotations

from examples.graphs.points_to.extract import extract
from examples.graphs.points_to.program import Program
from examples.graphs.points_to.query import Holds, Points
from examples.graphs.show import Story, console

SHOP = """\
from store import find

class Cart:
    def __init__(self, store):
        self.store = store
        self.items = []

    def put(self, item):
        self.items.append(item)

cart = Cart(find("main street"))
cart.put(cart.store.goods)
first = cart.items[0]
"""
STORE = """\
class Store:
    def __init__(self):
        self.goods = {}

def find(name):
    return Store()
"""
SPECIAL = """
class Gift(Cart):
    def put(self, item):
        super().put(("wrapped", item))

cart = Gift(find("side street"))
"""


def is_named(row: Points) -> bool:
    """Return True if the program has a name for a variable."""
    return not row.variable.rpartition(":")[2].isdigit()


def is_made(row: Holds) -> bool:
    """Return True if an object is made by the program, and not passed by an unknown caller."""
    return row.site.at != ""


def show() -> None:
    """Print the program, and the edits."""
    program = Program()
    _put(program, {"shop": SHOP, "store": STORE})
    out = console()
    for name, text in (("shop.py", SHOP), ("store.py", STORE)):
        out.rule(name, align="left")
        out.print(text, markup=False)
    views = {
        "variables": program.points.where(is_named).materialize("variables"),
        "fields": program.holds.where(is_made).materialize("fields"),
        "calls": program.calls,
    }
    story = Story("What variables and fields may hold", program.db, views, limit=20, out=out)
    story.begin()
    with story.edit("store.py: find() gives what it found in a list"):
        _put(program, {"store": STORE.replace("return Store()", "return [Store()]")})
    with story.edit("shop.py: takes the first of the list"):
        _put(program, {"shop": SHOP.replace('street")', 'street")[0]')})
    with story.edit("both as they were"):
        _put(program, {"shop": SHOP, "store": STORE})
    with story.edit("shop.py: a class of carts that wrap what is put in"):
        _put(program, {"shop": SHOP.replace("\ncart = ", f"{SPECIAL}\ncart = ")})
    with story.edit("store.py is empty"):
        _put(program, {"store": ""})


def _put(program: Program, sources: dict[str, str]) -> None:
    program.put({f"{name}.py": extract(name, text.encode()) for name, text in sources.items()})
