"""Compiled loops of the segment posterior: odds per cell, and sums over all boxes of a grid of up to three axes.

Arrays are in the order of the geometry: row-major grid cells, or the line of the tree order as a 1 x d x 1 grid.

The weight of a box is the product of the odds q of its cells. For the columns [c0, c1) of a plane let r_b be the product
over row b. Then the runs of rows that end with row b weigh F_b = r_b (1 + F_(b-1)), those that begin with row b or hold
nothing U_b = 1 + r_b U_(b+1), and the boxes through row b weigh F_b U_(b+1): all boxes are summed without listing
them, and nothing but products and sums of positive numbers is taken. 16 right borders c1 are worked on side by side.
"""

from __future__ import annotations

from math import gamma, pi, sqrt

import numpy as np
from numba import njit

from goldseam.compiled import lean
from goldseam.separation.box_kernels import lanes_backward, lanes_forward, lanes_multiply
from goldseam.separation.nearest_kernels import nearest_rows
from goldseam.separation.vector_kernels import LANES

__all__ = ["box_posterior", "boxes_posterior", "cell_odds", "outline_rows", "workspace"]

PEAK = gamma(2.5) / (gamma(2.0) * sqrt(4.0 * pi))  # of Student's t with 4 degrees of freedom
LARGEST_LOG = 690.0  # of numbers that float64 can hold


@lean()
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


@lean(error_model="numpy")
def cell_odds(row, donors, reference, spread, slab, n_levels, limit, work, out):  # type: ignore[no-untyped-def]
    """(S-25) Root of the likelihood ratio "overwritten : clean" of every cell of one row, within 1/limit and limit.

    Clean number: Student-t with 4 degrees of freedom around the donors' mean, with their variance plus `spread`² as
    scale; its root needs no logarithm. Clean category: share of donors that have it, smoothed. Overwritten: `slab`.
    Not observed: 1. `work` is (3, columns).
    """
    count, mean, square = work[0], work[1], work[2]
    _donor_moments(donors, reference, count, mean, square)
    for j in range(row.shape[0]):
        variance = square[j] / max(count[j], 1.0) + spread[j] * spread[j]
        gap = row[j] - mean[j]
        wide = variance + 0.25 * gap * gap
        root = np.sqrt(slab[j] / PEAK) * (wide * np.sqrt(np.sqrt(wide)) / variance)
        out[j] = min(max(root, 1.0 / limit), limit)
    for j in range(row.shape[0]):
        if np.isnan(row[j]) or count[j] == 0.0:
            out[j] = 1.0
        elif n_levels[j] > 0:
            same = 0.0
            for a in donors:
                same += a >= 0 and reference[a, j] == row[j]
            clean = (same + 1.0 / n_levels[j]) / (count[j] + 1.0)
            out[j] = min(max(np.sqrt(slab[j] / clean), 1.0 / limit), limit)


@njit(nogil=True, cache=True)
def workspace(shape):  # type: ignore[no-untyped-def]
    """Arrays that `box_posterior` works in: six for the columns of a plane, then the weights of its cells and of all layers'."""
    A, B, C = shape
    wide = (C + LANES - 1) // LANES * LANES
    plane, ratio, below = np.empty((B, C)), np.empty(B * wide), np.empty((B + 1) * wide)
    above, mass, ends = np.empty(wide), np.empty(wide), np.empty(B * (wide + 1))
    return plane, ratio, below, above, mass, ends, np.empty((B, C)), np.empty((A + 1, B, C))


@lean(boundscheck=False)
def _line_sums(line, below, out):  # type: ignore[no-untyped-def]
    """The same for the runs of a line: nothing lies side by side."""
    last = len(line) - 1
    below[last] = 1.0
    for b in range(last, 0, -1):
        below[b - 1] = 1.0 + line[b] * below[b]
    above, total = 0.0, 0.0
    for b in range(last + 1):
        above = line[b] * (1.0 + above)
        total += above
        out[b] = above * below[b]
    return total


@lean(boundscheck=False)
def _plane_sums(plane, ratio, below, above, mass, ends, out):  # type: ignore[no-untyped-def]
    """Weight of the boxes of a plane that hold each cell into `out`; returns that of all boxes."""
    B, C = plane.shape
    if C == 1:
        return _line_sums(plane[:, 0], below, out[:, 0])
    wide = above.shape[0]
    ratio[:] = 0.0
    mass[:] = 0.0
    out[:] = 0.0
    ends[:] = 0.0
    for c0 in range(C - 1, -1, -1):
        first = c0 // LANES * LANES
        for b in range(B):
            for lane in range(first, wide, LANES):
                lanes_multiply(ratio, b * wide + lane, plane[b, c0])
            ratio[b * wide + c0] = plane[b, c0]
        below[B * wide :] = 1.0
        above[:] = 0.0
        for lane in range(first, wide, LANES):
            for b in range(B - 1, 0, -1):
                lanes_backward(below, b * wide + lane, ratio, b * wide + lane, (b + 1) * wide + lane)
            for b in range(B):
                here = b * wide + lane
                out[b, c0] += lanes_forward(
                    above, mass, lane, ratio, here, below, here + wide, ends, b * (wide + 1) + lane + 1
                )
    for b in range(B):
        run = 0.0
        for c in range(C):
            run += out[b, c] - ends[b * (wide + 1) + c]
            out[b, c] = run
    return mass.sum()


@lean(boundscheck=False)
def _all_sums(odds, shape, work):  # type: ignore[no-untyped-def]
    """The same for all layers: weights in the layers of the last array of the work space."""
    A, B, C = shape
    plane, ratio, below, above, mass, ends, held, layers = work
    cells = odds.reshape(A, B, C)
    if A == 1:
        return _plane_sums(cells[0], ratio, below, above, mass, ends, layers[0])
    layers[:] = 0.0
    total = 0.0
    for a0 in range(A):
        plane[:] = 1.0
        for a1 in range(a0, A):
            for b in range(B):
                for c in range(C):
                    plane[b, c] *= cells[a1, b, c]
            total += _plane_sums(plane, ratio, below, above, mass, ends, held)
            for b in range(B):
                for c in range(C):
                    layers[a0, b, c] += held[b, c]
                    layers[a1 + 1, b, c] -= held[b, c]
    for a in range(1, A):
        for b in range(B):
            for c in range(C):
                layers[a, b, c] += layers[a - 1, b, c]
    return total


@lean()
def box_posterior(odds, shape, log_none, work, posterior):  # type: ignore[no-untyped-def]
    """Chance of every cell to lie in the overwritten box, if there is at most one; `log_none` weighs "no box".

    Returns log of the mean over boxes of the products of their odds: the row's evidence for a segment. Odds whose
    products would leave the range of float64 are flattened by a common power first.
    """
    A, B, C = shape
    total = _all_sums(odds, shape, work)
    if not total < np.exp(LARGEST_LOG):
        bound = _log_boxes(A, B, C)
        for j in range(len(odds)):
            bound += np.log(max(odds[j], 1.0))
        for j in range(len(odds)):
            odds[j] **= LARGEST_LOG / bound
        total = _all_sums(odds, shape, work)
    whole, layers = total + np.exp(log_none), work[-1]
    cell = 0
    for a in range(A):
        for b in range(B):
            for c in range(C):
                posterior[cell] = min(max(layers[a, b, c] / whole, 0.0), 1.0)
                cell += 1
    return np.log(total) - _log_boxes(A, B, C)


@lean()
def _log_boxes(A, B, C):  # type: ignore[no-untyped-def]
    return np.log((A * (A + 1) / 2) * (B * (B + 1) / 2) * (C * (C + 1) / 2))


@lean()
def boxes_posterior(odds, shape, most, gain, work, extra, posterior):  # type: ignore[no-untyped-def]
    """The same for up to `most` boxes, found one after another.

    Cells inside a box found before count neither for nor against the next one, which must be `gain` more likely (in
    logs, over all places it could have) than no further box. `odds` is overwritten.
    """
    A, B, C = shape
    score = box_posterior(odds, shape, 0.0, work, posterior)
    for _ in range(1, most):
        inside = 0
        for j in range(odds.shape[0]):
            if posterior[j] > 0.5:
                odds[j] = 1.0
                inside += 1
        if inside == 0 or inside == odds.shape[0]:
            break
        box_posterior(odds, shape, _log_boxes(A, B, C) + gain, work, extra)
        more = False
        for j in range(odds.shape[0]):
            more |= extra[j] > 0.5
        if not more:
            break
        for j in range(odds.shape[0]):
            posterior[j] = max(posterior[j], extra[j])
    return score


@lean()
def _row_posterior(row, near, cells, block, grid, most, gain, space, posterior):  # type: ignore[no-untyped-def]
    """Posterior per cell and evidence of one row, whose donors `near` are known.

    `block[j]` is the cell of the (possibly coarser) `grid` that column j lies in; odds multiply there.
    """
    reference, spread, slab, n_levels, limit = cells
    odds, moments, blocks, extra, local, work = space
    cell_odds(row, near, reference, spread, slab, n_levels, limit, moments, odds)
    blocks[:] = 1.0
    for j in range(odds.shape[0]):
        blocks[block[j]] = min(max(blocks[block[j]] * odds[j], 1e-100), 1e100)
    score = boxes_posterior(blocks, grid, most, gain, work, extra, local)
    for j in range(odds.shape[0]):
        posterior[j] = local[block[j]]
    return score


@lean()
def _new_mask(row, seed, largest, posterior, mask):  # type: ignore[no-untyped-def]
    """Cells above 1/2, or the seed where they would leave no context; returns whether the mask has changed."""
    drawn = 0
    for j in range(row.shape[0]):
        drawn += posterior[j] > 0.5 and not np.isnan(row[j])
    changed = False
    for j in range(row.shape[0]):
        if drawn > largest * row.shape[0]:
            posterior[j] = 1.0 if seed[j] else 0.0
        new = posterior[j] > 0.5 and not np.isnan(row[j])
        changed |= new != mask[j]
        mask[j] = new
    return changed


@njit(nogil=True, cache=True)
def outline_rows(  # type: ignore[no-untyped-def]
    laid, scaled, seed, skips, places, search, k, cells, block, grid, settings, mask, posterior, score, donors
):
    """Alternate between nearest rows over the believed cells and the box posterior, from the seed cells on.

    `laid` holds the rows in the order of the geometry, `scaled` in that of the tree, `places[t]` the geometry's place of
    the tree's column t; `search` and `cells` are what `nearest_rows` and `cell_odds` compare with. Donors of a row whose
    mask has not come to rest are -1.
    """
    (n, d), (A, B, C) = laid.shape, grid
    caps, flat, seen, n_rows = search
    space = (
        np.empty(d),
        np.empty((3, d)),
        np.empty(A * B * C),
        np.empty(A * B * C),
        np.empty(A * B * C),
        workspace(grid),
    )
    x, hidden, own = np.empty((n, d), scaled.dtype), np.empty((n, d), np.bool_), np.empty(n, np.int64)
    index, distance = np.empty((n, k), np.int64), np.empty((n, k), scaled.dtype)
    mask[:] = seed
    active, todo = np.arange(n), n
    donors[:] = -2  # none yet
    for _ in range(settings[0]):
        for a in range(todo):
            i = active[a]
            own[a] = skips[i]
            for t in range(d):
                x[a, t], hidden[a, t] = scaled[i, t], mask[i, places[t]]
        nearest_rows(x[:todo], hidden[:todo], own[:todo], caps, flat, seen, n_rows, k, index[:todo], distance[:todo])
        todo = _draw(
            laid, seed, cells, block, grid, settings, space, index, active[:todo], mask, posterior, score, donors
        )
    for a in range(todo):
        donors[active[a]] = -1


@lean()
def _draw(laid, seed, cells, block, grid, settings, space, index, active, mask, posterior, score, donors):  # type: ignore[no-untyped-def]
    """The masks of the `active` rows by their nearest rows `index`; the first of `active` become those whose mask changed."""
    _, largest, most, gain = settings
    left = 0
    for a in range(len(active)):
        i, same = active[a], True
        for neighbour in range(index.shape[1]):
            same &= donors[i, neighbour] == index[a, neighbour]
            donors[i, neighbour] = index[a, neighbour]
        if same:
            continue  # the same neighbours would draw the same mask
        score[i] = _row_posterior(laid[i], donors[i], cells, block, grid, most, gain, space, posterior[i])
        if _new_mask(laid[i], seed[i], largest, posterior[i], mask[i]):
            active[left] = i
            left += 1
    return left
