"""Spark itself: the session, and streaming queries over folders of files.

Lives here:  the session and its end, mailboxes, streams over them, progress lines.
Comes in:    a session or its settings; files of numbered changes.
Goes out:    batches of a streaming query, in the order in which they were given.
May import:  reactive.
"""
