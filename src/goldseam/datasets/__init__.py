"""Loaders of public data sets and generators of synthetic ones."""
