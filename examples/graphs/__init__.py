"""Recursive queries over graphs, each in a file of its own that shows them at work.

    python -m examples.graphs.closure           the pairs of nodes that a path connects
    python -m examples.graphs.same_generation   pairs at one distance from a common ancestor
    python -m examples.graphs.shortest_paths    the cheapest way to each place
    python -m examples.graphs.longest_chain     how deep things depend on each other, up to a bound
    python -m examples.graphs.page_rank         how much pages count, after some rounds
    python -m examples.graphs.k_means           points in clusters, after some rounds
    python -m examples.graphs.points_to         which objects variables of real code may hold

Each prints what a few edits of its tables change in its views.
"""
