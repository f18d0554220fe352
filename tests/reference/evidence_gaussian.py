"""Conditional means and variances of a Gaussian the textbook way: one solve per cell."""

from __future__ import annotations

import numpy as np


def conditional_cells(x, covariance, starts, withheld):
    """Every cell of one row given the believed others. Returns mean and variance per dimension."""
    dims = len(x)
    mean, variance = np.empty(dims), np.empty(dims)
    cells = [np.arange(starts[c], starts[c + 1]) for c in range(len(starts) - 1)]
    for c, own in enumerate(cells):
        others = [cell for k, cell in enumerate(cells) if k != c and not withheld[k]]
        given = np.concatenate(others) if others else np.empty(0, dtype=int)
        weights = np.linalg.solve(covariance[np.ix_(given, given)], covariance[np.ix_(given, own)]).T
        mean[own] = weights @ x[given]
        variance[own] = np.diag(covariance[np.ix_(own, own)] - weights @ covariance[np.ix_(given, own)])
    return mean, variance
