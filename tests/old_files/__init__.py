"""Files that were written before modules moved: what they hold is read by their earlier names."""
