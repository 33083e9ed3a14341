"""Spark itself: the session, and the folders that it and the driver share.

Lives here:  the session and its end, file systems, files of spilled rows, progress lines.
Comes in:    a session or its settings; numbered changes of spilled rows.
Goes out:    a session that is alive; spilled rows, in ranges.
May import:  reactive.
"""
