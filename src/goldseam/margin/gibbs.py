"""The paper's solver: Gibbs sampling of the indicators inside projected stochastic gradient steps on the duals.

========  =================================================================
(G-7)     `gibbs`: minimises the log partition function over alpha and mu
(G-8)     `_sweep`: the gradient of alpha by conditional means
(G-9)     `_dual_gradient`: that of mu
(G-10)    `_sweep`: draws eta given theta
(G-11)    `linear_features`; `_sweep`: draws theta ~ N(Phi' u, I), f = Phi theta
(G-12)    `kernel_features`
(G-13)    `gibbs`: the projected steps, one length per row
========  =================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from goldseam.margin.solvers import LiteralEntropy

__all__ = ["Features", "GibbsResult", "gibbs", "kernel_features", "linear_features"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SWEEPS = 5
ALPHA_STEP = 1.0
DUAL_STEP = 5.0


@dataclass(frozen=True)
class Features:
    """Phi with Phi Phi' = Ktilde, and `back`: the map from theta to what predicts (weights, or dual coefficients)."""

    phi: Floats
    back: Floats


def linear_features(rows: Floats, bias_sd: float = 1.0) -> Features:
    """Phi = [X, sigma_b 1]; `back` turns theta into (w, b)."""
    phi = np.column_stack([rows, np.full(len(rows), bias_sd)])
    return Features(phi, np.diag(np.append(np.ones(rows.shape[1]), bias_sd)))


def kernel_features(gram: Floats) -> Features:
    """(G-12): Phi = U sqrt(e) from K + 1e-9 I = U diag(e) U'; `back` turns theta into dual coefficients."""
    values, vectors = np.linalg.eigh(gram + 1e-9 * np.eye(len(gram)))
    kept = values > 1e-8 * values.max()
    values, vectors = values[kept], vectors[:, kept]
    return Features(vectors * np.sqrt(values), vectors / np.sqrt(values))


@dataclass(frozen=True)
class GibbsResult:
    """Trust and predictor averaged over the second half of the iterations, and the last duals."""

    trust: Floats
    predictor: Floats
    scores: Floats
    alpha: Floats
    duals: Floats


@dataclass(frozen=True)
class _Sweeps:
    """Averages over the sweeps of one iteration, and where the chain stands."""

    eta: Floats
    mean: Floats
    probability: Floats
    gradient: Floats


def gibbs(
    features: Features,
    signs: Floats,
    *,
    alpha: Floats,
    upper: Floats,
    prior: float,
    rng: np.random.Generator,
    field_odds: Floats | None = None,
    entropy: LiteralEntropy | None = None,
    n_iter: int = 200,
) -> GibbsResult:
    """Run the chain from `alpha`. The indicators lean on `field_odds` (lambda g), or on mu h / N of `entropy`.

    `signs` are -1 and +1; `upper` are the bounds C omega_n of alpha.
    """
    n = len(signs)
    duals = np.zeros(0 if entropy is None else len(entropy.budgets))
    step_scale = 1.0 + np.sum(features.phi**2, axis=1)
    eta = (rng.random(n) < prior).astype(float)
    trust, predictor, counted = np.zeros(n), np.zeros(features.phi.shape[1]), 0
    for t in range(1, n_iter + 1):
        lean = _lean(n, duals, field_odds, entropy)
        sweeps = _sweep(features.phi, signs, alpha, logit(prior) + lean, eta, rng)
        eta = sweeps.eta
        if t > n_iter // 2:
            trust, predictor, counted = trust + sweeps.probability, predictor + sweeps.mean, counted + 1
        alpha = np.clip(alpha - ALPHA_STEP / np.sqrt(t) * sweeps.gradient / step_scale, 0.0, upper)
        if entropy is not None:
            duals = np.clip(duals - DUAL_STEP * n / np.sqrt(t) * _dual_gradient(entropy, sweeps.probability), 0.0, n)
    theta = predictor / counted
    return GibbsResult(trust / counted, features.back @ theta, features.phi @ theta, alpha, duals)


def _lean(n: int, duals: Floats, field_odds: Floats | None, entropy: LiteralEntropy | None) -> Floats:
    if entropy is not None:
        return -duals[entropy.codes] * entropy.values / n
    return np.zeros(n) if field_odds is None else field_odds


def _sweep(phi: Floats, signs: Floats, alpha: Floats, odds: Floats, eta: Floats, rng: np.random.Generator) -> _Sweeps:
    """SWEEPS draws of theta and eta (G-10), (G-11); gradients by conditional means (G-8)."""
    mean = phi.T @ (eta * alpha * signs)
    mean_sum, probability_sum, gradient = np.zeros_like(mean), np.zeros(len(signs)), np.zeros(len(signs))
    for _ in range(SWEEPS):
        theta = mean + rng.standard_normal(len(mean))
        probability = expit(odds - alpha * (1.0 - signs * (phi @ theta)))
        eta = (rng.random(len(signs)) < probability).astype(float)
        mean = phi.T @ (eta * alpha * signs)
        gradient += eta * (signs * (phi @ mean) - 1.0)
        probability_sum += probability
        mean_sum += mean
    return _Sweeps(eta, mean_sum / SWEEPS, probability_sum / SWEEPS, gradient / SWEEPS)


def _dual_gradient(entropy: LiteralEntropy, probability: Floats) -> Floats:
    """(G-9) with probabilities instead of draws."""
    n = len(probability)
    expected = np.bincount(entropy.codes, probability * entropy.values, minlength=len(entropy.budgets))
    return (entropy.budgets - expected) / n
