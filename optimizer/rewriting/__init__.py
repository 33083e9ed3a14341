"""From a plan as it was written to the one that is run.

Lives here: all rules in their order, segments of long queries, the report.
Comes in:   a plan.
Goes out:   a plan that gives the same rows for less, and which rules made it.
May import: all other rooms.
"""
