"""Matplotlib displays, one file each."""
