"""Deciding in spite of what remains: GEM-MED."""
