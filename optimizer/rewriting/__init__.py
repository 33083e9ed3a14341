"""From a plan as written to the plan that runs.

Lives here: all rules in their order, segments of long queries, the report.
Comes in:   a plan.
Goes out:   a cheaper plan with the same rows, and the rules that made it.
May import: all other rooms.
"""
