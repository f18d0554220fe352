"""Measurements, one module each, grouped by room. `python -m benchmarks` runs them all."""
