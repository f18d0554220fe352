"""Summaries, reports and plots of a restoration."""
