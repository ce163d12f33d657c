"""Sessions apart from their turns: opened, read, changed, closed, forked, exported, imported, pruned and deleted."""
