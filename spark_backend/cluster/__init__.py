"""Spark itself: the session, and the folders that it and the driver share.

Lives here:  the session, file systems, progress lines.
Comes in:    a session or its settings; paths and URIs.
Goes out:    a session that is alive; the file system of a path.
May import:  reactive.
"""
