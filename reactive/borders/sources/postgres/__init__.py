"""Tables of Postgres as a source: a snapshot, then each of its transactions as a commit.

    snapshot of the slot  -->  rows in batches
    logical replication   -->  feed.py  -->  stream.py  -->  one batch per transaction

Users import `PostgresSource` and `NotifySource`; `python -m reactive.sources.postgres` writes
classes of rows to a file. The driver is psycopg2, the only maintained one that speaks the
replication protocol; it is imported where it is used.
"""
