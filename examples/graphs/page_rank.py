"""PageRank: the importance of pages, where a page passes its rank along its links.

    rank(p)  =  0.15  +  0.85 * sum of rank(q) / links of q, over the pages q that link to p

The formula is applied a number of times, beginning with 1 for each page. Sums over the result of a
round may grow and shrink, so this is no `fixpoint` but `iterate`: a number of rounds, each one
maintained. A changed link changes the ranks of the pages one step away in the first round, two
steps away in the second one, and so on. Ranks are rounded, so a change that has become too small
to be seen goes no further.

Sums are exact whatever the history (`Sum` equals `math.fsum`), so after any edits the ranks equal
those of a fresh computation to the last digit.

Source: L. Page, S. Brin, R. Motwani, T. Winograd: *The PageRank Citation Ranking*, 1999; [mrql]
repeat; [dbsp] section 7.
"""

from __future__ import annotations

from typing import NamedTuple

from examples.graphs.edges import Edge, parse
from examples.graphs.show import Story
from reactive import Count, Database, Relation, Sum, iterate

ROUNDS = 20
DIGITS = 6


class Rank(NamedTuple):
    """The rank of a page."""

    page: str
    rank: float

    def __str__(self) -> str:
        return f"{self.page}: {self.rank:.6f}"


class Links(NamedTuple):
    """The number of links of a page."""

    page: str
    number: int


class Share(NamedTuple):
    """A link, and among how many its page shares its rank."""

    src: str
    dst: str
    links: int


def page_rank(links: Relation[Edge], rounds: int = ROUNDS, digits: int = DIGITS) -> Relation[Rank]:
    """Return the rank of each page that has a link or is linked to; two equal links count as one.

    >>> links = Database().table(Edge, name="links")
    >>> ranks = page_rank(links).materialize()
    >>> links.add_all(parse("a-b-a c-b"))
    >>> [str(row) for row in sorted(ranks)]
    ['a: 1.408348', 'b: 1.441651', 'c: 0.150000']
    """
    once = links.distinct()
    pages = once.select_many(lambda link: (link.src, link.dst)).distinct()
    counted = once.group_by(lambda link: link.src).aggregate(Count())
    counts = counted.select(lambda page, number: Links(page, number))
    shares = once.join(counts, on=lambda link, of: link.src == of.page).select(
        lambda link, of: Share(link.src, link.dst, of.number)
    )
    nothing = pages.select(lambda page: Rank(page, 0.0))

    def step(ranks: Relation[Rank]) -> Relation[Rank]:
        given = ranks.join(shares, on=lambda r, share: r.page == share.src).select(
            lambda r, share: Rank(share.dst, r.rank / share.links)
        )
        total = given.union_all(nothing).group_by(lambda r: r.page).aggregate(Sum(lambda r: r.rank))
        return total.select(lambda page, rank: Rank(page, round(0.15 + 0.85 * rank, digits)))

    return iterate(step, pages.select(lambda page: Rank(page, 1.0)), times=rounds)


def main() -> None:
    """Rank a few pages that link to each other."""
    db = Database()
    links = db.table(Edge, name="links")
    links.add_all(
        parse("home-news home-docs news-home docs-guide-home docs-api blog-news fan-blog")
    )
    ranks = page_rank(links).materialize("rank")
    story = Story("How much pages count", db, {"rank": ranks})
    story.begin()
    with story.edit("the blog links to the guide, too"):
        links.add(Edge("blog", "guide"))
    with story.edit("the news no longer link to home"):
        links.remove(Edge("news", "home"))
    with story.edit("two pages that are linked to nothing else"):
        links.add_all(parse("left-right-left"))
    with story.edit("those go again: no other page is looked at"):
        links.remove_all(parse("left-right-left"))


if __name__ == "__main__":
    main()
