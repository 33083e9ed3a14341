"""Files as a source: the files that match a pattern, read line by line or as a whole.

pattern --> current files --> new contents of each --> one batch per round
            (stamps)          (formats, values)
"""
