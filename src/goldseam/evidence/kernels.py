"""Compiled loops of the joint posterior: the pool of experts, the row prior, the chain of segments.

Legend: kappa = log(clean density given the believed others / marginal density) of a cell; slab = damaged / marginal;
so slab * exp(-kappa) is the likelihood ratio damaged : clean.
"""

from __future__ import annotations

from math import erfc, exp, log, sqrt

import numpy as np
from numba import njit

from goldseam.compiled import lean

__all__ = [
    "belief_step",
    "level_log_ratio",
    "most_contradicted",
    "pool_components",
    "pool_log_ratio",
    "pool_moments",
    "shared_support",
    "weigh_candidates",
]

_MOST = 1e15  # largest likelihood ratio of one cell
_TINY = 1e-300
_FAR = 1e100  # products and sums are brought back from beyond this, or below its inverse


@lean()
def normal_mass(low, high):  # type: ignore[no-untyped-def]
    """Phi(high) - Phi(low) without loss in the tails."""
    if low > 0.0:
        return 0.5 * (erfc(low / sqrt(2.0)) - erfc(high / sqrt(2.0)))
    return 0.5 * (erfc(-high / sqrt(2.0)) - erfc(-low / sqrt(2.0)))


@lean(error_model="numpy")
def component(z, low, high, own, mean, width):  # type: ignore[no-untyped-def]
    """Likelihood of a score under N(mean, width^2), as a multiple of its likelihood under N(0, 1), for a tie `own`."""
    if np.isnan(low):
        r = (z - mean) / width
        return exp(min(0.5 * (z * z - r * r), 600.0)) / width
    return max(normal_mass((low - mean) / width, (high - mean) / width), _TINY) / own


@lean()
def _own_mass(low, high):  # type: ignore[no-untyped-def]
    """Mass of a tie under N(0, 1); 1 for a value without mass."""
    return 1.0 if np.isnan(low) else max(normal_mass(low, high), _TINY)


@njit(nogil=True, cache=True)
def pool_components(z, low, high, row_of, mean, width, scales):  # type: ignore[no-untyped-def]
    """All components of the pool: (n, m, E * S + 1), expert by scale, the column's own marginal last."""
    experts, n, m = mean.shape
    size = len(scales)
    out = np.ones((n, m, experts * size + 1))
    for i in range(n):
        r = row_of[i]
        for j in range(m):
            if np.isnan(z[r, j]):
                continue
            own = _own_mass(low[r, j], high[r, j])
            for e in range(experts):
                for s in range(size):
                    out[i, j, e * size + s] = component(
                        z[r, j], low[r, j], high[r, j], own, mean[e, i, j], width[e, i, j] * scales[s]
                    )
    return out


@njit(nogil=True, cache=True)
def pool_log_ratio(z, low, high, row_of, mean, width, scales, weights):  # type: ignore[no-untyped-def]
    """kappa of every number: log of the weighted sum of `pool_components`; zero where unobserved."""
    experts, n, m = mean.shape
    size = len(scales)
    out = np.zeros((n, m))
    for i in range(n):
        r = row_of[i]
        for j in range(m):
            if np.isnan(z[r, j]):
                continue
            total, own = weights[j, experts * size], _own_mass(low[r, j], high[r, j])
            for e in range(experts):
                for s in range(size):
                    w = weights[j, e * size + s]
                    if w > 1e-9:
                        total += w * component(
                            z[r, j], low[r, j], high[r, j], own, mean[e, i, j], width[e, i, j] * scales[s]
                        )
            out[i, j] = log(max(total, _TINY))
    return out


@njit(nogil=True, cache=True)
def pool_moments(mean, width, scales, weights):  # type: ignore[no-untyped-def]
    """Mean and width of the pooled score of every number."""
    experts, n, m = mean.shape
    size = len(scales)
    center = np.zeros((n, m))
    spread = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            first, second = 0.0, weights[j, experts * size]
            for e in range(experts):
                for s in range(size):
                    w, wide = weights[j, e * size + s], width[e, i, j] * scales[s]
                    first += w * mean[e, i, j]
                    second += w * (mean[e, i, j] * mean[e, i, j] + wide * wide)
            center[i, j] = first
            spread[i, j] = sqrt(max(second - first * first, 1e-12))
    return center, spread


@njit(nogil=True, cache=True)
def level_log_ratio(codes, row_of, shares, frequency, offsets):  # type: ignore[no-untyped-def]
    """kappa of every category cell: log(pooled probability / frequency); zero where unobserved."""
    n, k = len(row_of), codes.shape[1]
    out = np.zeros((n, k))
    for i in range(n):
        for j in range(k):
            code = codes[row_of[i], j]
            if code >= 0:
                out[i, j] = log(shares[i, offsets[j] + code] / frequency[offsets[j] + code])
    return out


@lean()
def log_sum(a, b):  # type: ignore[no-untyped-def]
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    if a == -np.inf:
        return a
    return a + np.log1p(exp(b - a))


@lean(error_model="numpy")
def chain_pass(like, runs, order, alpha, inrun):  # type: ignore[no-untyped-def]
    """Forward-backward over off / short run / long run; returns the log evidence relative to all cells clean.

    like (p): likelihood ratio damaged : clean; 1 where there is no evidence. alpha (p, 3) is scratch; inrun (p) receives
    P(cell in a run). runs: mean short, mean long, P(first cell in a run), P(start). Sums are brought back to 1 only before
    they leave the range of numbers: a division and a logarithm per cell would take longer than all the rest.
    """
    p = len(like)
    leave1, leave2, first, start = 1.0 / runs[0], 1.0 / runs[1], runs[2], runs[3]
    stay1, stay2, idle, begin = 1.0 - leave1, 1.0 - leave2, 1.0 - start, 0.5 * start
    norm, total = 0.0, 1.0
    a0, a1, a2 = 1.0 - first, 0.5 * first, 0.5 * first
    for a in range(p):
        if a > 0:
            enter = a0 * begin
            a0 = a0 * idle + a1 * leave1 + a2 * leave2
            a1 = enter + a1 * stay1
            a2 = enter + a2 * stay2
        a1 *= like[order[a]]
        a2 *= like[order[a]]
        total = a0 + a1 + a2
        if total > _FAR or total < 1.0 / _FAR:
            norm += log(total)
            a0, a1, a2, total = a0 / total, a1 / total, a2 / total, 1.0
        alpha[a, 0], alpha[a, 1], alpha[a, 2] = a0, a1, a2
    c0, c1, c2 = 1.0, 1.0, 1.0
    for a in range(p - 1, -1, -1):
        on = alpha[a, 1] * c1 + alpha[a, 2] * c2
        inrun[order[a]] = on / (alpha[a, 0] * c0 + on)
        e1, e2 = like[order[a]] * c1, like[order[a]] * c2
        c1 = leave1 * c0 + stay1 * e1
        c2 = leave2 * c0 + stay2 * e2
        c0 = idle * c0 + begin * (e1 + e2)
        most = max(c0, c1, c2)
        if most > _FAR or most < 1.0 / _FAR:
            c0, c1, c2 = c0 / most, c1 / most, c2 / most
    return norm + log(total)


@lean(error_model="numpy")
def pattern_log_prior(mask, usable, runs, order):  # type: ignore[no-untyped-def]
    """log P(exactly these cells are in runs) under the chain."""
    leave1, leave2, idle, begin = 1.0 / runs[0], 1.0 / runs[1], 1.0 - runs[3], 0.5 * runs[3]
    a0, a1, a2 = 1.0 - runs[2], 0.5 * runs[2], 0.5 * runs[2]
    norm, mass = 0.0, 1.0
    for a in range(len(mask)):
        if a > 0:
            enter = a0 * begin
            a0 = a0 * idle + a1 * leave1 + a2 * leave2
            a1 = enter + a1 * (1.0 - leave1)
            a2 = enter + a2 * (1.0 - leave2)
        j = order[a]
        if usable[j]:
            if mask[j]:
                a0 = 0.0
            else:
                a1, a2 = 0.0, 0.0
        mass = max(a0 + a1 + a2, _TINY)
        if mass < 1.0 / _FAR:
            norm += log(mass)
            a0, a1, a2, mass = a0 / mass, a1 / mass, a2 / mass, 1.0
    return norm + log(mass)


@lean(error_model="numpy")
def _scattered(like, rate):  # type: ignore[no-untyped-def]
    """log of the product over cells of 1 - rate + rate like."""
    total, product, sound = 0.0, 1.0, 1.0 - rate
    for j in range(len(like)):
        product *= sound + rate * like[j]
        if product > _FAR or product < 1.0 / _FAR:
            total += log(product)
            product = 1.0
    return total + log(product)


@lean(error_model="numpy")
def row_posterior(like, clean, scatter, rates, segment, runs, order, scratch, on, off):  # type: ignore[no-untyped-def]
    """The row's log odds of damage (E-6); P(damaged) : P(sound) of its cells is on : off (p).

    like (kinds, p): likelihood ratios damaged : clean, 1 where there is no evidence. scratch: as of `posterior_scratch`.
    """
    kinds, p = like.shape
    n_rates = len(rates)
    alpha, inrun, evidence = scratch
    top = log(clean)
    for s in range(kinds):
        for k in range(n_rates):
            evidence[s, k] = log(scatter[k, s]) + _scattered(like[s], rates[k])
            top = max(top, evidence[s, k])
        evidence[s, n_rates] = log(segment[s]) + chain_pass(like[s], runs, order, alpha, inrun[s])
        top = max(top, evidence[s, n_rates])
    damaged, sound = 0.0, exp(log(clean) - top)
    on[:] = _TINY
    off[:] = _TINY + sound
    for s in range(kinds):
        weight = exp(evidence[s, n_rates] - top)
        damaged += weight
        for j in range(p):
            on[j] += weight * inrun[s, j]
            off[j] += weight * (1.0 - inrun[s, j])
        for k in range(n_rates):
            weight, rate = exp(evidence[s, k] - top), rates[k]
            damaged += weight
            for j in range(p):
                share = weight / (1.0 - rate + rate * like[s, j])
                on[j] += share * rate * like[s, j]
                off[j] += share * (1.0 - rate)
    return log(max(damaged, _TINY)) - log(max(sound, _TINY))


@njit(nogil=True, cache=True)
def posterior_scratch(kinds, p, n_rates):  # type: ignore[no-untyped-def]
    """What `row_posterior` works in: the chain's sums, P(cell in a run) by kind, evidence by kind and way."""
    return np.empty((p, 3)), np.empty((kinds, p)), np.empty((kinds, n_rates + 1))


@lean(error_model="numpy")
def candidate_weight(  # type: ignore[no-untyped-def]
    slab, kappa, mask, usable, clean, scatter, rates, segment, runs, order, patterns
):
    """log pseudo-likelihood of 'exactly these cells are damaged': prior, slabs of the withheld, kappa of the rest (E-7).

    patterns (rates + 1) is scratch: the prior of the pattern in runs, and scattered at each rate.
    """
    count, believed, rest = 0, 0, 0.0
    for j in range(len(kappa)):
        if usable[j]:
            if mask[j]:
                count += 1
            else:
                believed += 1
                rest += kappa[j]
    patterns[0] = pattern_log_prior(mask, usable, runs, order)
    top = patterns[0]
    for k in range(len(rates)):
        patterns[k + 1] = count * log(rates[k]) + believed * log(1.0 - rates[k])
        top = max(top, patterns[k + 1])
    for k in range(len(patterns)):
        patterns[k] = exp(patterns[k] - top)
    total = log(clean) - top if count == 0 else -np.inf
    for s in range(len(segment)):
        drawn, prior = 0.0, segment[s] * patterns[0]
        for k in range(len(rates)):
            prior += scatter[k, s] * patterns[k + 1]
        for j in range(len(kappa) if count else 0):
            if usable[j] and mask[j]:
                drawn += log(max(slab[s, j], _TINY))
        total = log_sum(total, log(prior) + drawn)
    return top + total + rest


@njit(nogil=True, cache=True)
def most_contradicted(drawn, kappa, row_of, settled, least, count):  # type: ignore[no-untyped-def]
    """Cells with the largest log-likelihood ratios drawn - kappa, above `least`, but for those `settled` (N, p), of the rows
    `row_of`, the largest first: (n, count); -1 where there are no more."""
    out = np.full((len(row_of), count), -1)
    for i in range(len(row_of)):
        r = row_of[i]
        for k in range(count):
            most = least
            for j in range(kappa.shape[1]):
                llr = drawn[r, j] - kappa[r, j]
                if llr > most and not settled[r, j] and not (out[i, :k] == j).any():
                    out[i, k], most = j, llr
    return out


@njit(nogil=True, cache=True)
def shared_support(first, kappa, row_of, usable, withheld):  # type: ignore[no-untyped-def]
    """What the m withheld cells of a candidate vouch for each other and (E-7) counts more than once, (n) (E-12).

    first (N, p): kappa with nothing withheld; kappa (n, p): given the candidate's believed cells alone. Let the m cells come
    back one by one, in any order: the lack first - kappa of a cell falls with the square of the share of the others that
    are still missing, on average (2 m - 1) / (6 (m - 1)) of it is left when its turn comes. That is exact for two.
    """
    n, p = kappa.shape
    out = np.zeros(n)
    for i in range(n):
        r = row_of[i]
        count, lack = 0, 0.0
        for j in range(p):
            if usable[r, j] and withheld[r, j]:
                count += 1
                lack += first[r, j] - kappa[i, j]
        if count > 1:
            out[i] = lack * (2.0 * count - 1.0) / (6.0 * count - 6.0)
    return out


@lean()
def _fingerprint(mask):  # type: ignore[no-untyped-def]
    code = np.uint64(1469598103934665603)
    for j in range(len(mask)):
        code = (code ^ np.uint64(2 if mask[j] else 1)) * np.uint64(1099511628211)
    return code


@lean()
def _is_new(code, visited, count):  # type: ignore[no-untyped-def]
    """Whether a fingerprint is not among the first `count`."""
    new = True
    for k in range(count):
        new &= visited[k] != code
    return new


@njit(nogil=True, cache=True)
def belief_scratch(kinds, p, n_rates):  # type: ignore[no-untyped-def]
    """What `_weigh` works in: P(damaged) : P(sound) and llr of the cells, likelihood ratios, what the posterior works in."""
    cells = np.empty(p), np.empty(p), np.empty(p)
    return cells, np.empty((kinds, p)), posterior_scratch(kinds, p, n_rates), np.empty(n_rates + 1)


@lean(error_model="numpy")
def _weigh(r, mask, kappa, shared, cells, state, prior, scratch):  # type: ignore[no-untyped-def]
    """Weigh one candidate of row r and add its posterior, unless it has been visited; returns its log weight (E-7)."""
    slab, drawn, usable = cells
    visited, count, best, total, on, off, surprise, odds = state
    clean, scatter, rates, segment, runs, order = prior
    (damaged, sound, llr), like, chain, patterns = scratch
    for j in range(len(kappa)):
        unlikely = exp(-kappa[j])
        llr[j] = drawn[r, j] - kappa[j]
        for s in range(slab.shape[0]):
            like[s, j] = min(slab[s, r, j] * unlikely, _MOST) if usable[r, j] else 1.0
    row_odds = row_posterior(like, clean, scatter, rates, segment, runs, order, chain, damaged, sound)
    weight = shared + candidate_weight(
        slab[:, r], kappa, mask, usable[r], clean, scatter, rates, segment, runs, order, patterns
    )
    code = _fingerprint(mask)
    if not _is_new(code, visited[r], count[r]):
        return weight
    if count[r] == 0:
        odds[r] = row_odds
    visited[r, count[r]] = code
    count[r] += 1
    new = max(best[r], weight)
    old_scale, scale = exp(best[r] - new), exp(weight - new)
    best[r] = new
    total[r] = total[r] * old_scale + scale
    for j in range(len(kappa)):
        both = damaged[j] + sound[j]
        on[r, j] = on[r, j] * old_scale + scale * (damaged[j] / both)
        off[r, j] = off[r, j] * old_scale + scale * (sound[j] / both)
        surprise[r, j] = surprise[r, j] * old_scale + scale * llr[j]
    return weight


@njit(nogil=True, cache=True)
def weigh_candidates(masks, kappa, row_of, cells, state, prior):  # type: ignore[no-untyped-def]
    """Weigh candidates, masks (n, p) of the rows `row_of`, with kappa (n, p) given each; returns their log weights.

    cells: slab (kinds, N, p); drawn (N, p), the log of its mean over kinds; usable (N, p). state, written in place, by row of the
    table: visited (N, most) fingerprints of earlier candidates, count (N) of them; best (N) largest log weight; total (N), on,
    off, surprise (N, p) weighted sums scaled by e^-best; odds (N) of the first candidate.
    """
    weights = np.empty(len(row_of))
    scratch = belief_scratch(cells[0].shape[0], kappa.shape[1], len(prior[2]))
    for i in range(len(row_of)):
        weights[i] = _weigh(row_of[i], masks[i], kappa[i], 0.0, cells, state, prior, scratch)
    return weights


@njit(nogil=True, cache=True)
def belief_step(withheld, kappa, shared, row_of, cells, state, prior, share, most):  # type: ignore[no-untyped-def]
    """One round of beliefs for the rows `row_of`: weigh the candidate, add its posterior, propose the next (E3, E8.4).

    withheld (N, p) are the candidates, written over by the next ones; cells, state: as in `weigh_candidates`. `shared` (n) is
    added to the log weight. Of the cells believed but likelier damaged the worst `share` is withheld next, never more than
    `most` of the row; withheld cells likelier sound come back. Returns which rows have a new candidate.
    """
    going = np.zeros(len(row_of), np.bool_)
    scratch = belief_scratch(cells[0].shape[0], kappa.shape[1], len(prior[2]))
    _step_rows(withheld, kappa, shared, row_of, cells, state, prior, scratch, share, most, going)
    return going


@lean()
def _step_rows(withheld, kappa, shared, row_of, cells, state, prior, scratch, share, most, going):  # type: ignore[no-untyped-def]
    """`belief_step` with what it works in; `going` receives which rows have a new candidate."""
    usable, visited, count = cells[2], state[0], state[1]
    damaged, sound, llr = scratch[0]
    for i in range(len(row_of)):
        r = row_of[i]
        _weigh(r, withheld[r], kappa[i], shared[i], cells, state, prior, scratch)
        _propose(withheld[r], usable[r], damaged, sound, llr, share, most)
        going[i] = _is_new(_fingerprint(withheld[r]), visited[r], count[r])


@lean()
def _propose(mask, usable, damaged, sound, llr, share, most):  # type: ignore[no-untyped-def]
    """The next candidate, written over `mask`; damaged : sound are the odds of the cells."""
    p = len(mask)
    addable = 0
    held = 0
    for j in range(p):
        if not usable[j]:
            continue
        if mask[j] and damaged[j] < sound[j]:
            mask[j] = False
        elif mask[j]:
            held += 1
        elif damaged[j] > sound[j]:
            addable += 1
    quota = min(int(np.ceil(share * addable)), int(most * p) - held)
    for _ in range(quota):
        worst = -1
        for j in range(p):
            if usable[j] and not mask[j] and damaged[j] > sound[j] and (worst < 0 or llr[j] > llr[worst]):
                worst = j
        if worst < 0:
            break
        mask[worst] = True
