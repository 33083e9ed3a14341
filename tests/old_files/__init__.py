"""Files that were written before modules moved: they are read by the earlier module names."""
