"""Compiled loops of the segment posterior: evidence per cell, and sums over all boxes of a grid of up to three axes.

Arrays are in the order of the geometry: row-major grid cells, or the line of the tree order as a 1 x 1 x d grid.
"""

from __future__ import annotations

from math import lgamma

import numpy as np
from numba import njit

__all__ = ["box_posterior", "boxes_posterior", "cell_evidence", "outline_boxes"]

REACH = 20.0  # boxes whose weight is below exp(-20) of the best are left out


@njit(nogil=True, cache=True)
def _donor_moments(donors, reference, count, mean, square):  # type: ignore[no-untyped-def]
    """Number, mean and summed squared deviation of the donors' observed values in every column."""
    d = reference.shape[1]
    count[:] = 0.0
    mean[:] = 0.0
    square[:] = 0.0
    for a in donors:
        if a >= 0:
            for j in range(d):
                value = reference[a, j]
                seen = value == value
                count[j] += 1.0 if seen else 0.0
                mean[j] += value if seen else 0.0
    for j in range(d):
        mean[j] /= max(count[j], 1.0)
    for a in donors:
        if a >= 0:
            for j in range(d):
                value = reference[a, j]
                gap = value - mean[j] if value == value else 0.0
                square[j] += gap * gap


@njit(nogil=True, cache=True)
def cell_evidence(row, donors, reference, spread, log_slab, n_levels, freedom, limit, work, out):  # type: ignore[no-untyped-def]
    """(S-25) Log-likelihood ratio "overwritten : clean" of every cell of one row, within ±limit.

    Clean number: Student-t around the donors' mean, with their variance plus `spread`² as scale. Clean category:
    share of donors that have it, smoothed. Overwritten: `log_slab`. Not observed: 0. `work` is (3, columns).
    """
    constant = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - 0.5 * np.log(freedom * np.pi)
    count, mean, square = work[0], work[1], work[2]
    _donor_moments(donors, reference, count, mean, square)
    for j in range(row.shape[0]):
        if np.isnan(row[j]) or count[j] == 0.0:
            out[j] = 0.0
        elif n_levels[j] > 0:
            same = 0.0
            for a in donors:
                same += a >= 0 and reference[a, j] == row[j]
            clean = np.log((same + 1.0 / n_levels[j]) / (count[j] + 1.0))
            out[j] = min(max(log_slab[j] - clean, -limit), limit)
        else:
            variance = square[j] / count[j] + spread[j] * spread[j]
            gap = row[j] - mean[j]
            tail = np.log1p(gap * gap / (variance * freedom))
            clean = constant - 0.5 * np.log(variance) - (freedom + 1) / 2 * tail
            out[j] = min(max(log_slab[j] - clean, -limit), limit)


@njit(nogil=True, cache=True)
def _integral(evidence, A, B, C, total):  # type: ignore[no-untyped-def]
    """total[a, b, c] = sum of the evidence over the box [0, a) x [0, b) x [0, c)."""
    total[:] = 0.0
    for a in range(A):
        for b in range(B):
            run = 0.0
            for c in range(C):
                run += evidence[(a * B + b) * C + c]
                total[a + 1, b + 1, c + 1] = run + total[a + 1, b, c + 1]
        for b in range(B):
            for c in range(C):
                total[a + 1, b + 1, c + 1] += total[a, b + 1, c + 1]


@njit(nogil=True, cache=True)
def _profile(total, a0, a1, b0, b1, C, line):  # type: ignore[no-untyped-def]
    """Prefix sums along the last axis for a slab of the first two, and the largest sum of a run in it."""
    low, best = 0.0, -np.inf
    line[0] = 0.0
    for c in range(1, C + 1):
        value = total[a1, b1, c] - total[a0, b1, c] - total[a1, b0, c] + total[a0, b0, c]
        line[c] = value
        best = max(best, value - low)
        low = min(low, value)
    return best


@njit(nogil=True, cache=True)
def _best_box(total, A, B, C, line, bests):  # type: ignore[no-untyped-def]
    """Largest evidence of a box, and of every slab of the first two axes in turn."""
    top, slab = -np.inf, 0
    for a0 in range(A):
        for a1 in range(a0 + 1, A + 1):
            for b0 in range(B):
                for b1 in range(b0 + 1, B + 1):
                    bests[slab] = _profile(total, a0, a1, b0, b1, C, line)
                    top = max(top, bests[slab])
                    slab += 1
    return top


@njit(nogil=True, cache=True)
def _slab_weights(line, C, cut, top, temper, ahead, steps):  # type: ignore[no-untyped-def]
    """Weights of all runs of a slab, as differences in `steps`; returns their sum."""
    ahead[C] = line[C]
    for c in range(C - 1, 0, -1):
        ahead[c] = max(line[c], ahead[c + 1])
    steps[:] = 0.0
    mass = 0.0
    for c0 in range(C):
        if ahead[c0 + 1] - line[c0] <= cut:
            continue
        for c1 in range(c0 + 1, C + 1):
            value = line[c1] - line[c0]
            if value > cut:
                w = np.exp(temper * (value - top))
                mass += w
                steps[c0] += w
                steps[c1] -= w
    return mass


@njit(nogil=True, cache=True)
def box_posterior(evidence, shape, temper, log_none, total, weight, lines, bests, posterior):  # type: ignore[no-untyped-def]
    """Chance of every cell to lie in the overwritten box, if there is at most one; `log_none` weighs "no box".

    Returns log of the mean over boxes of exp(temper * evidence in the box): the row's evidence for a segment.
    Work space: total, weight (A+1, B+1, C+1), lines (3, C+1), bests (slabs of the first two axes).
    """
    A, B, C = shape
    line, ahead, steps = lines[0], lines[1], lines[2]
    _integral(evidence, A, B, C, total)
    top = _best_box(total, A, B, C, line, bests)
    if 0 < log_none >= temper * top + _log_boxes(A, B, C):  # not 1/2 even if all boxes were as good as the best
        posterior[:] = 0.0
        return temper * top - _log_boxes(A, B, C)
    weight[:] = 0.0
    mass, cut, slab = 0.0, top - REACH / temper, 0
    for a0 in range(A):
        for a1 in range(a0 + 1, A + 1):
            for b0 in range(B):
                for b1 in range(b0 + 1, B + 1):
                    if bests[slab] > cut:
                        _profile(total, a0, a1, b0, b1, C, line)
                        mass += _slab_weights(line, C, cut, top, temper, ahead, steps)
                        for c in range(C):
                            weight[a0, b0, c] += steps[c]
                            weight[a0, b1, c] -= steps[c]
                            weight[a1, b0, c] -= steps[c]
                            weight[a1, b1, c] += steps[c]
                    slab += 1
    whole = mass + np.exp(min(log_none - temper * top, 700.0))
    _spread(weight, A, B, C, whole, posterior)
    return np.log(mass) + temper * top - _log_boxes(A, B, C)


@njit(nogil=True, cache=True)
def _log_boxes(A, B, C):  # type: ignore[no-untyped-def]
    return np.log((A * (A + 1) / 2) * (B * (B + 1) / 2) * (C * (C + 1) / 2))


@njit(nogil=True, cache=True)
def boxes_posterior(evidence, shape, temper, most, gain, total, weight, lines, bests, extra, posterior):  # type: ignore[no-untyped-def]
    """The same for up to `most` boxes, found one after another.

    Cells inside a box found before count neither for nor against the next one, which must be `gain` more likely (in
    logs, over all places it could have) than no further box. `evidence` is overwritten.
    """
    A, B, C = shape
    score = box_posterior(evidence, shape, temper, 0.0, total, weight, lines, bests, posterior)
    for _ in range(1, most):
        inside = 0
        for j in range(evidence.shape[0]):
            if posterior[j] > 0.5:
                evidence[j] = 0.0
                inside += 1
        if inside == 0 or inside == evidence.shape[0]:
            break
        box_posterior(evidence, shape, temper, _log_boxes(A, B, C) + gain, total, weight, lines, bests, extra)
        if extra.max() <= 0.5:
            break
        for j in range(evidence.shape[0]):
            posterior[j] = max(posterior[j], extra[j])
    return score


@njit(nogil=True, cache=True)
def _spread(weight, A, B, C, whole, posterior):  # type: ignore[no-untyped-def]
    """Sum the differences up along the three axes."""
    for a in range(A):
        for b in range(B):
            for c in range(C):
                if c > 0:
                    weight[a, b, c] += weight[a, b, c - 1]
    for a in range(A):
        for b in range(1, B):
            for c in range(C):
                weight[a, b, c] += weight[a, b - 1, c]
    for a in range(1, A):
        for b in range(B):
            for c in range(C):
                weight[a, b, c] += weight[a - 1, b, c]
    for a in range(A):
        for b in range(B):
            for c in range(C):
                posterior[(a * B + b) * C + c] = min(max(weight[a, b, c] / whole, 0.0), 1.0)


@njit(nogil=True, cache=True)
def outline_boxes(  # type: ignore[no-untyped-def]
    rows,
    donors,
    reference,
    spread,
    log_slab,
    n_levels,
    freedom,
    limit,
    temper,
    most,
    gain,
    block,
    grid,
    posterior,
    score,
):
    """Posterior per cell and evidence per row, for rows whose donors are known.

    `block[j]` is the cell of the (possibly coarser) `grid` that column j lies in; evidence adds up there.
    """
    d = rows.shape[1]
    A, B, C = grid
    evidence, summed, local, work = np.empty(d), np.empty(A * B * C), np.empty(A * B * C), np.empty((3, d))
    total, weight = np.empty((A + 1, B + 1, C + 1)), np.empty((A + 1, B + 1, C + 1))
    lines, extra = np.empty((3, C + 1)), np.empty(A * B * C)
    bests = np.empty(A * (A + 1) // 2 * (B * (B + 1) // 2))
    for i in range(rows.shape[0]):
        cell_evidence(rows[i], donors[i], reference, spread, log_slab, n_levels, freedom, limit, work, evidence)
        summed[:] = 0.0
        for j in range(d):
            summed[block[j]] += evidence[j]
        score[i] = boxes_posterior(summed, grid, temper, most, gain, total, weight, lines, bests, extra, local)
        for j in range(d):
            posterior[i, j] = local[block[j]]
