"""The printed model by brute force: sum over all indicator states (G-7), and gradients from those sums (G-8), (G-9)."""

from __future__ import annotations

from itertools import product

import numpy as np


def states(n):
    return np.array(list(product((0.0, 1.0), repeat=n)))


def log_weights(gram, signs, entropy, codes, alpha, duals, prior):
    """Log weight of every state: prior, Gaussian integral over theta, and the two exponents."""
    n = len(signs)
    eta = states(n)
    u = eta * (alpha * signs)
    quadratic = 0.5 * np.einsum("sn,nm,sm->s", u, gram, u)
    linear = eta @ (alpha + duals[codes] * entropy / n)
    log_prior = eta.sum(axis=1) * np.log(prior) + (n - eta.sum(axis=1)) * np.log(1 - prior)
    return log_prior + quadratic - linear


def log_partition(gram, signs, entropy, codes, budgets, alpha, duals, prior):
    values = log_weights(gram, signs, entropy, codes, alpha, duals, prior)
    top = values.max()
    return top + np.log(np.sum(np.exp(values - top))) + np.sum(duals * budgets) / len(signs)


def gradients(gram, signs, entropy, codes, budgets, alpha, duals, prior):
    """(G-8) and (G-9) as expectations under the exact distribution."""
    n = len(signs)
    values = log_weights(gram, signs, entropy, codes, alpha, duals, prior)
    chance = np.exp(values - values.max())
    chance /= chance.sum()
    eta = states(n)
    f = (eta * (alpha * signs)) @ gram
    by_alpha = chance @ (eta * (signs * f - 1.0))
    expected = chance @ eta
    by_dual = np.array([budgets[c] - np.sum((expected * entropy)[codes == c]) for c in range(len(budgets))]) / n
    return by_alpha, by_dual


def marginals(gram, signs, entropy, codes, alpha, duals, prior):
    """P(eta_n = 1) under the exact distribution."""
    values = log_weights(gram, signs, entropy, codes, alpha, duals, prior)
    chance = np.exp(values - values.max())
    return (chance / chance.sum()) @ states(len(signs))
