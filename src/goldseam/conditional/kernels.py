"""Compiled loops of the conditional experts: normal scores, Gaussian conditioning, boosted trees, ties.

Each loop does one row at a time in a fixed order of operations, so a row's result does not depend on its batch.
"""

from __future__ import annotations

from math import erfc, exp, log, pi, sqrt

import numpy as np
from numba import njit

from goldseam.compiled import lean

__all__ = [
    "exponential",
    "forest_values",
    "gaussian_cells",
    "guided",
    "guides",
    "level_shares",
    "normal_quantile",
    "places",
    "score_numbers",
    "scores_around",
    "tie_sums",
    "unscore_numbers",
]

_TAIL = 1e-12


@lean()
def normal_cdf(z):  # type: ignore[no-untyped-def]
    """Phi(z)."""
    return 0.5 * erfc(-z / sqrt(2.0))


# Wichura's rational approximations of the normal quantile (algorithm AS 241), highest power first: numerator and
# denominator in .180625 - (u - 1/2)^2, and in sqrt(-log u) less 1.6 and 5.
_MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_SIDE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
     3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)  # fmt: skip
_END = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


@lean(error_model="numpy")
def _ratio(r, parts):  # type: ignore[no-untyped-def]
    """Numerator over denominator at r."""
    (a, b, c, d, e, f, g, h), (i, j, k, l, m, n, o, p) = parts  # noqa: E741
    top = ((((((a * r + b) * r + c) * r + d) * r + e) * r + f) * r + g) * r + h
    return top / (((((((i * r + j) * r + k) * r + l) * r + m) * r + n) * r + o) * r + p)


@lean(error_model="numpy")
def normal_quantile(u):  # type: ignore[no-untyped-def]
    """The inverse of Phi, to the last digits: no logarithm for the middle 85 %."""
    q = u - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(0.180625 - q * q, _MIDDLE)
    r = sqrt(-log(max(u if q < 0.0 else 1.0 - u, 1e-300)))
    z = _ratio(r - 1.6, _SIDE) if r <= 5.0 else _ratio(r - 5.0, _END)
    return -z if q < 0.0 else z


@lean()
def _position(knots, first, last, x):  # type: ignore[no-untyped-def]
    """Largest k in [first, last) with knots[k] <= x; first - 1 if there is none."""
    low, left = first - 1, last - first
    while left > 0:  # the same steps whatever is found: nothing to predict wrongly
        half = (left + 1) // 2
        low += half if knots[low + half] <= x else 0
        left -= half
    return low


@lean()
def _positions(knots, first, last, w, x, y, z):  # type: ignore[no-untyped-def]
    """`_position` of four values at once: while one waits for its knot, the others go on."""
    a = b = c = d = first - 1
    left = last - first
    while left > 0:
        half = (left + 1) // 2
        a += half if knots[a + half] <= w else 0
        b += half if knots[b + half] <= x else 0
        c += half if knots[c + half] <= y else 0
        d += half if knots[d + half] <= z else 0
        left -= half
    return a, b, c, d


@lean()
def positions(knots, first, last, values, out):  # type: ignore[no-untyped-def]
    """`_position` of many values."""
    n = len(values)
    for i in range(0, n - 3, 4):
        out[i], out[i + 1], out[i + 2], out[i + 3] = _positions(
            knots, first, last, values[i], values[i + 1], values[i + 2], values[i + 3]
        )
    for i in range(n - n % 4, n):
        out[i] = _position(knots, first, last, values[i])


@lean()
def _share_of_range(x, bottom, scale, n):  # type: ignore[no-untyped-def]
    """Which of n equal parts of the range x lies in; never falls as x rises. Of ranges too wide or narrow, the last."""
    share = (x - bottom) * scale
    return np.int64(share) if share < n else n - 1


@njit(nogil=True, cache=True)
def guides(knots, offsets):  # type: ignore[no-untyped-def]
    """For each column as many equal parts of its range as it has knots, and one more: the first knot that is not below it."""
    m = len(offsets) - 1
    out, scale = np.empty(len(knots) + m, np.int64), np.zeros(m)
    for j in range(m):
        first, last = offsets[j], offsets[j + 1]
        n, at = last - first, first
        if knots[last - 1] > knots[first]:
            scale[j] = n / (knots[last - 1] - knots[first])
        for b in range(n):
            while at < last and _share_of_range(knots[at], knots[first], scale[j], n) < b:
                at += 1
            out[first + j + b] = at
        out[last + j] = last
    return out, scale


@lean()
def guided(knots, first, last, guide, scale, x):  # type: ignore[no-untyped-def]
    """`_position` of a value within the range of the column's knots: only those of its part of the range are compared."""
    part = _share_of_range(x, knots[first], scale, last - first)
    return _position(knots, guide[part], guide[part + 1], x)


@njit(nogil=True, cache=True)
def places(knots, values, out):  # type: ignore[no-untyped-def]
    """`_position` of many values among all knots."""
    n = len(knots)
    if n == 0:
        out[:] = -1
    else:
        guide, scale = guides(knots, np.array([0, n]))
        _guided_places(knots, guide, scale[0], values, out)


@lean()
def _guided_places(knots, guide, scale, values, out):  # type: ignore[no-untyped-def]
    """`places`, given the guide; there must be a knot."""
    n = len(knots)
    for i in range(len(values)):
        if values[i] >= knots[n - 1]:
            out[i] = n - 1
        else:
            out[i] = guided(knots, 0, n, guide, scale, values[i]) if values[i] >= knots[0] else -1


@lean()
def _survival(excess, sigma, xi):  # type: ignore[no-untyped-def]
    """Generalised Pareto: P(more than this excess)."""
    if xi < 1e-6:
        return exp(-excess / sigma)
    return (1.0 + xi * excess / sigma) ** (-1.0 / xi)


@lean()
def _score_outside(x, bottom, top, tiny, sigma, xi):  # type: ignore[no-untyped-def]
    """Normal score of a value beyond the reference's range."""
    excess = (x - top) if x > top else (bottom - x)
    score = normal_quantile(max(0.5 * tiny * _survival(excess, sigma, xi), _TAIL))
    return -score if x > top else score


@lean()
def _score_inside(x, k, knots, levels):  # type: ignore[no-untyped-def]
    """Normal score of a value at knot k, or between it and the next."""
    if knots[k] == x:
        return normal_quantile(levels[k])
    share = (x - knots[k]) / (knots[k + 1] - knots[k])
    return normal_quantile(levels[k] + share * (levels[k + 1] - levels[k]))


@njit(nogil=True, cache=True)
def scores_around(mean, sd, knots, levels, offsets, guide, scale, n_seen, tail_sigma, tail_xi):  # type: ignore[no-untyped-def]
    """Scores z, as of `score_numbers`, of means, and half the way from that of mean - sd to that of mean + sd.

    `levels` are P(X < knot) + P(X = knot) / 2; guide, scale: those of `guides`.
    """
    center, width = np.full(mean.shape, np.nan), np.full(mean.shape, np.nan)
    around = np.empty(3), np.empty(3)
    _score_around(mean, sd, knots, levels, offsets, guide, scale, n_seen, tail_sigma, tail_xi, around, center, width)
    return center, width


@lean()
def _score_around(  # type: ignore[no-untyped-def]
    mean, sd, knots, levels, offsets, guide, scale, n_seen, tail_sigma, tail_xi, around, center, width
):
    """`scores_around` into `center` and `width`."""
    (values, scores), (n, m) = around, mean.shape
    for j in range(m):  # one column after the other: its knots stay at hand
        first, last = offsets[j], offsets[j + 1]
        bottom, top, tiny = knots[first], knots[last - 1], 1.0 / (n_seen[j] + 1.0)
        for i in range(n):
            if np.isnan(mean[i, j]) or np.isnan(sd[i, j]):
                continue
            values[0], values[1], values[2] = mean[i, j] - sd[i, j], mean[i, j], mean[i, j] + sd[i, j]
            for k in range(3):
                if bottom <= values[k] <= top:
                    place = guided(knots, first, last, guide[first + j :], scale[j], values[k])
                    scores[k] = _score_inside(values[k], place, knots, levels)
                else:
                    side = 1 if values[k] > top else 0
                    scores[k] = _score_outside(values[k], bottom, top, tiny, tail_sigma[j, side], tail_xi[j, side])
            center[i, j], width[i, j] = scores[1], (scores[2] - scores[0]) / 2.0


@njit(nogil=True, cache=True)
def score_numbers(  # type: ignore[no-untyped-def]
    numbers,
    knots,
    below,
    upto,
    levels,
    offsets,
    guide,
    scale,
    edges,
    density,
    edge_offsets,
    discrete,
    resolution,
    center,
    spread,
    n_seen,
    tail_sigma,
    tail_xi,
):
    """Normal scores z with their bounds, and the ratios uniform / marginal and wide / marginal of every number (E8.2).

    `knots` are the distinct reference values of a column with P(X < knot) = `below`, P(X <= knot) = `upto` and `levels` between;
    `edges`/`density` hold dz/dx. `low`, `high` are the bounds of
    the score of a tied value and NaN for a value without mass.
    """
    n, m = numbers.shape
    z = np.full((n, m), np.nan)
    low = np.full((n, m), np.nan)
    high = np.full((n, m), np.nan)
    even = np.ones((n, m))
    far = np.ones((n, m))
    bin_ = np.empty(n, np.int64)
    for j in range(m):
        first, last = offsets[j], offsets[j + 1]
        bottom, top = knots[first], knots[last - 1]
        span, tiny = max(top - bottom, 1e-300), 1.0 / (n_seen[j] + 1.0)
        positions(edges, edge_offsets[j], edge_offsets[j + 1] - 1, numbers[:, j], bin_)
        for i in range(n):
            x = numbers[i, j]
            if np.isnan(x):
                continue
            away = 1.0 + abs(x - center[j]) / (3.0 * spread[j])
            wide = 1.0 / (away * away * 6.0 * spread[j])
            if x > top or x < bottom:
                side = 1 if x > top else 0
                excess = (x - top) if side == 1 else (bottom - x)
                sigma, xi = tail_sigma[j, side], tail_xi[j, side]
                z[i, j] = _score_outside(x, bottom, top, tiny, sigma, xi)
                dens = 0.5 * tiny * _survival(excess, sigma, xi) / (sigma + xi * excess)
                even[i, j] = 0.0
                far[i, j] = wide / max(dens, 1e-300)
                continue
            k = guided(knots, first, last, guide[first + j :], scale[j], x)
            z[i, j] = _score_inside(x, k, knots, levels)
            if knots[k] == x:
                p = upto[k] - below[k]
                if discrete[j] or p > 2.5 * tiny:
                    low[i, j] = normal_quantile(below[k]) if below[k] > 0.0 else -40.0
                    high[i, j] = normal_quantile(upto[k]) if upto[k] < 1.0 else 40.0
                    share = 1.0 / (last - first) if discrete[j] else min(1.0, resolution[j] / span)
                    even[i, j] = share / p
                    far[i, j] = min(share, resolution[j] * wide) / p
                    continue
            if discrete[j]:
                even[i, j] = 0.0
                far[i, j] = 1.0 / (last - first) / tiny
                continue
            dens = density[max(bin_[i], edge_offsets[j])] * exp(-0.5 * z[i, j] * z[i, j]) / sqrt(2.0 * pi)
            dens = 0.98 * dens + 0.02 / span
            even[i, j] = 1.0 / span / dens
            far[i, j] = wide / dens
    return z, low, high, even, far


@lean()
def unscore_one(u, knots, below, upto, levels, first, last):  # type: ignore[no-untyped-def]
    """The value at level u of a column's distribution; NaN at no level."""
    if np.isnan(u):
        return u
    if u <= levels[first]:
        return knots[first]
    if u >= levels[last - 1]:
        return knots[last - 1]
    k = _position(levels, first, last, u)
    rise = levels[k + 1] - levels[k]
    if u < upto[k] and upto[k] - below[k] > 1.25 * rise:
        return knots[k]
    return knots[k] + (u - levels[k]) / rise * (knots[k + 1] - knots[k])


@njit(nogil=True, cache=True)
def unscore_numbers(mean, width, knots, below, upto, levels, offsets, nodes, weights):  # type: ignore[no-untyped-def]
    """E[x] in own units when the score is normal (mean, width): a quadrature over `nodes`."""
    out = np.empty(mean.shape)
    _unscore(mean, width, knots, below, upto, levels, offsets, nodes, weights, out)
    return out


@lean()
def _unscore(mean, width, knots, below, upto, levels, offsets, nodes, weights, out):  # type: ignore[no-untyped-def]
    """`unscore_numbers` into `out`."""
    n, m = mean.shape
    for j in range(m):
        for i in range(n):
            total = 0.0
            for k in range(len(nodes)):
                u = normal_cdf(mean[i, j] + width[i, j] * nodes[k])
                total += weights[k] * unscore_one(u, knots, below, upto, levels, offsets[j], offsets[j + 1])
            out[i, j] = total


@njit(nogil=True, cache=True)
def gaussian_cells(x, precision, starts, withheld, row_of, asked):  # type: ignore[no-untyped-def]
    """Every cell given the believed others, exactly, for any mask (G).

    x (n, D): centred dimensions (zero where unobserved); cell c owns the dimensions starts[c] : starts[c + 1].
    withheld (n, p): cells not to be believed. Row i of the result uses x[row_of[i]] and withheld[i]. Withholding
    dimension d downdates q = P x and P by the outer product of v = P[d] / sqrt(P[d, d]); what is left of P on the
    believed cells is their marginal precision. Returns the conditional mean and variance of every dimension; zeros for
    believed cells that are not `asked` for (p,).
    """
    n, p = withheld.shape
    dims = x.shape[1]
    mean = np.zeros((n, dims))
    variance = np.zeros((n, dims))
    rows = np.empty((dims, dims))
    block = np.empty((dims, dims))
    rhs = np.empty(dims)
    y = np.empty(dims)
    chosen = np.empty(dims, np.int64)
    widest = 1
    for c in range(p):
        widest = max(widest, starts[c + 1] - starts[c])
    whole = np.zeros((dims, widest))  # factors of the cells' blocks of P itself, for rows with nothing withheld
    for c in range(p):
        first, size = starts[c], starts[c + 1] - starts[c]
        if size > 1:
            for a in range(size):
                for b in range(a + 1):
                    whole[first + a, b] = precision[first + a, first + b]
            _factor_lower(whole[first : first + size], size)
    for i in range(n):
        row = x[row_of[i]]
        count = 0
        for c in range(p):
            if withheld[i, c]:
                for d in range(starts[c], starts[c + 1]):
                    chosen[count] = d
                    count += 1
        q = np.zeros(dims)
        for d in range(dims):
            if row[d] != 0.0:
                for e in range(dims):
                    q[e] += row[d] * precision[d, e]
        diagonal = np.empty(dims)
        for d in range(dims):
            diagonal[d] = precision[d, d]
        for a in range(count):
            d = chosen[a]
            v = rows[a]
            for e in range(dims):
                v[e] = precision[d, e]
            for k in range(a):
                factor = rows[k, d]
                if factor != 0.0:
                    for e in range(dims):
                        v[e] -= factor * rows[k, e]
            scale = 1.0 / sqrt(max(v[d], 1e-12))
            y[a] = q[d] * scale
            for e in range(dims):
                v[e] *= scale
                q[e] -= v[e] * y[a]
                diagonal[e] -= v[e] * v[e]
        for c in range(p):
            first, size = starts[c], starts[c + 1] - starts[c]
            if withheld[i, c] or not asked[c]:
                continue
            if size == 1:
                variance[i, first] = 1.0 / max(diagonal[first], 1e-12)
                mean[i, first] = row[first] - q[first] * variance[i, first]
                continue
            for a in range(size):
                rhs[a] = q[first + a]
            if count == 0:
                _solve_lower(whole[first : first + size], rhs, size)
            else:
                for a in range(size):
                    for b in range(a + 1):
                        total = precision[first + a, first + b]
                        for k in range(count):
                            total -= rows[k, first + a] * rows[k, first + b]
                        block[a, b] = total
                _factor_lower(block, size)
                _solve_lower(block, rhs, size)
            for a in range(size):
                mean[i, first + a] = row[first + a] - rhs[a]
                variance[i, first + a] = 1.0 / max(diagonal[first + a], 1e-12)
        # withheld cells: residual u solves L' u = y with L[a, k] = rows[k, chosen[a]]; variance = diag of inv(L L')
        for a in range(count - 1, -1, -1):
            total = y[a]
            for b in range(a + 1, count):
                total -= rows[a, chosen[b]] * rhs[b]
            rhs[a] = total / rows[a, chosen[a]]
            mean[i, chosen[a]] = row[chosen[a]] - rhs[a]
        for a in range(count):
            total = 0.0
            for b in range(a, count):
                value = 1.0 if b == a else 0.0
                for k in range(a, b):
                    value -= rows[k, chosen[b]] * y[k]
                y[b] = value / rows[b, chosen[b]]
                total += y[b] * y[b]
            variance[i, chosen[a]] = total
    return mean, variance


@lean()
def _factor_lower(matrix, size):  # type: ignore[no-untyped-def]
    """Cholesky's factor of a small symmetric positive matrix, over its lower half."""
    for a in range(size):
        for b in range(a + 1):
            total = matrix[a, b]
            for k in range(b):
                total -= matrix[a, k] * matrix[b, k]
            matrix[a, b] = sqrt(max(total, 1e-12)) if a == b else total / matrix[b, b]


@lean()
def _solve_lower(matrix, rhs, size):  # type: ignore[no-untyped-def]
    """Solve in place a small symmetric positive system, given its factor."""
    for a in range(size):
        total = rhs[a]
        for k in range(a):
            total -= matrix[a, k] * rhs[k]
        rhs[a] = total / matrix[a, a]
    for a in range(size - 1, -1, -1):
        total = rhs[a]
        for k in range(a + 1, size):
            total -= matrix[k, a] * rhs[k]
        rhs[a] = total / matrix[a, a]


@njit(nogil=True, cache=True)
def forest_values(  # type: ignore[no-untyped-def]
    features, withheld, row_of, trees, tree_of_output, base, feature, threshold, missing_left, left, right, value
):
    """Sums of boosted trees. Output o of row i adds the leaves of trees tree_of_output[o] : tree_of_output[o + 1].

    features (n, p) with NaN = unobserved; nodes are flat arrays, a leaf has feature -1.
    """
    n, p = withheld.shape
    outputs = len(base)
    out = np.empty((n, outputs))
    seen = np.empty((n, p))
    for i in range(n):
        for c in range(p):
            seen[i, c] = np.nan if withheld[i, c] else features[row_of[i], c]
    for o in range(outputs):
        for i in range(n):
            out[i, o] = base[o]
        for t in range(tree_of_output[o], tree_of_output[o + 1]):
            root = trees[t]
            for i in range(n):  # all rows down one tree while it is in the cache; a row still adds its trees in order
                node = root
                while feature[node] >= 0:
                    x = seen[i, feature[node]]
                    if np.isnan(x):
                        node = left[node] if missing_left[node] else right[node]
                    elif x <= threshold[node]:
                        node = left[node]
                    else:
                        node = right[node]
                out[i, o] += value[node]
    return out


@njit(nogil=True, cache=True)
def exponential(x):  # type: ignore[no-untyped-def]
    """exp of every element, the same for an element wherever it stands."""
    out = np.empty(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = exp(x[i, j])
    return out


@njit(nogil=True, cache=True)
def level_shares(raw, classes, class_offsets, level_offsets, least):  # type: ignore[no-untyped-def]
    """Softmax of the raw outputs of each category, spread over all its levels with at least about `least` each."""
    n = len(raw)
    out = np.full((n, level_offsets[-1]), least)
    for i in range(n):
        for j in range(len(level_offsets) - 1):
            top = -np.inf
            for c in range(class_offsets[j], class_offsets[j + 1]):
                top = max(top, raw[i, c])
            total = 0.0
            for c in range(class_offsets[j], class_offsets[j + 1]):
                total += exp(raw[i, c] - top)
            for c in range(class_offsets[j], class_offsets[j + 1]):
                out[i, level_offsets[j] + classes[c]] += exp(raw[i, c] - top) / total
            norm = 1.0 + least * (level_offsets[j + 1] - level_offsets[j])
            for level in range(level_offsets[j], level_offsets[j + 1]):
                out[i, level] /= norm
    return out


@njit(nogil=True, cache=True)
def tie_sums(values, withheld, row_of, base, table):  # type: ignore[no-untyped-def]
    """Log odds of all levels (E-13): `base` and what the values of the believed cells add to it, cell by cell.

    values (N, p): rows of the table (values, levels), -1 where there is none. Row i of the result uses values[row_of[i]] and
    withheld[i].
    """
    n, p = withheld.shape
    out = np.empty((n, len(base)))
    for i in range(n):
        for level in range(len(base)):
            out[i, level] = base[level]
        for c in range(p):
            value = values[row_of[i], c]
            if value >= 0 and not withheld[i, c]:
                for level in range(len(base)):
                    out[i, level] += table[value, level]
    return out
