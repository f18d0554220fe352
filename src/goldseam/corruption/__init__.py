"""Damage on demand: seeded simulators that say which cells they touched."""
