"""Files as a source: those that match a pattern, line by line or as a whole.

pattern --> files there are --> what is new of each --> one batch per round
            (stamps)            (formats, values)
"""
