"""Random plans through random histories, against an oracle of plain Python over lists.

cases           the parts of a history; `tests.random_queries` draws queries and commits
side            a database that plays a history
hearing         the kinds of subscriptions, also in other threads and in an event loop
mirror          a copy of a view, made only of the deltas of its subscription
play            a history in several databases at once, compared after each commit
shrink          the same difference by a smaller history

python -m tests.soak --seconds 60       ends with status 1 if anything differs
python -m tests.soak --one 4711         one history again
"""
