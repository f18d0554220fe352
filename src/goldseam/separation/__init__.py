"""Which cells cannot be believed: tree-based corruption separation."""
