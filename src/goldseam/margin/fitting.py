"""Weighted SVM fits by scikit-learn (liblinear, LIBSVM, SGD) or `primal`, handed over as plain `Machine`s.

Two classes give one problem, more classes one problem per class against the rest; all share the row weights. Kernel
machines are fitted on a kernel matrix that is computed once and used in every round while it fits into memory.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning as LearnerDidNotConverge
from sklearn.linear_model import SGDClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from goldseam.errors import ConvergenceWarning, InputError
from goldseam.margin.machines import KernelFunction, Machine
from goldseam.margin.primal import fit_primal
from goldseam.margin.solvers import Fitted

__all__ = ["KernelFitter", "LinearFitter", "NystroemFitter", "class_signs", "gram_matrix", "resolve_gamma"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRAM_LIMIT = 6000
"""Most rows whose kernel matrix is kept (6000 rows: 288 MB)."""
LIBSVM_LIMIT = 2000
"""Most rows that LIBSVM is tried on when liblinear does not converge."""
ROWS_PER_COLUMN = 10
"""From this many rows per column, and more rows than `LIBSVM_LIMIT`, the primal problem is the easier one."""
PRIMAL_GAP = 1e-4
LIBSVM_STEPS = 200_000
LIBLINEAR_UPDATES = 4_000_000
SGD_EPOCHS = 5


def class_signs(codes: Ints, n_classes: int) -> Floats:
    """Targets -1 and +1, one row per problem: class 1 against class 0, or each class against the rest.

    >>> class_signs(np.array([0, 1, 1]), 2)
    array([[-1.,  1.,  1.]])
    """
    positive = [1] if n_classes == 2 else range(n_classes)
    return np.array([np.where(codes == code, 1.0, -1.0) for code in positive])


def _converges(learner: Any, rows: Floats, signs: Floats, weights: Floats) -> bool:
    """Fit the learner; False where it says that it ran out of steps."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LearnerDidNotConverge)
        learner.fit(rows, signs, sample_weight=weights)
    return not any(issubclass(w.category, LearnerDidNotConverge) for w in caught)


def _fit_libsvm(rows: Floats, signs: Floats, weights: Floats, **settings: Any) -> SVC:
    learner = SVC(max_iter=LIBSVM_STEPS, **settings)
    if not _converges(learner, rows, signs, weights):
        warnings.warn(
            f"LIBSVM did not converge in {LIBSVM_STEPS} steps; its last iterate was used. Hint: scale the features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return learner


@dataclass
class LinearFitter:
    """Linear machines. `solver` is `'auto'`, `'liblinear'`, `'primal'`, `'libsvm'` or `'sgd'`; `used` is what ran last.

    `'auto'` is the primal solver for many rows and few columns, else liblinear; where that does not converge (features
    far from unit scale) LIBSVM takes over, with a warning.
    """

    rows: Floats
    signs: Floats
    C: float
    solver: str = "auto"
    seed: int = 0
    tol: float = 1e-3
    used: str = field(init=False)
    _last: dict[int, Floats] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        n, p = self.rows.shape
        many = n > LIBSVM_LIMIT and n >= ROWS_PER_COLUMN * p
        self.used = ("primal" if many else "liblinear") if self.solver == "auto" else self.solver

    def __call__(self, weights: Floats) -> Fitted:
        """Fit every problem with these row weights."""
        if self.used == "primal":
            fits = [self._fit_primal(number, sign, weights) for number, sign in enumerate(self.signs)]
        else:
            fits = [self._fit(sign, weights) for sign in self.signs]
        machine = Machine("linear", np.array([fit[0] for fit in fits]), np.array([fit[1] for fit in fits]))
        penalised_bias = self.used in ("liblinear", "primal")
        half_norm = 0.5 * float(np.sum(machine.coefficients**2) + penalised_bias * np.sum(machine.intercepts**2))
        return Fitted(machine, machine.scores(self.rows), half_norm)

    def _fit_primal(self, number: int, signs: Floats, weights: Floats) -> tuple[Floats, float]:
        """Newton's method from where the last round ended."""
        found = fit_primal(self.rows, signs, self.C * weights, start=self._last.get(number), gap=PRIMAL_GAP)
        if found.gap > PRIMAL_GAP:
            warnings.warn(
                f"The primal solver ended {found.gap:.1e} of the objective above the optimum, {PRIMAL_GAP:g} was wanted. "
                "Hint: scale the features (RobustScaler), or set linear_solver.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._last[number] = found.theta
        return found.theta[:-1], float(found.theta[-1])

    def _fit(self, signs: Floats, weights: Floats) -> tuple[Floats, float]:
        if self.used == "liblinear":
            learner = LinearSVC(
                C=self.C, loss="hinge", dual=True, tol=self.tol, max_iter=self._passes, random_state=self.seed
            )
            if not _converges(learner, self.rows, signs, weights) and self._give_up():
                return self._fit(signs, weights)
        elif self.used == "libsvm":
            learner = _fit_libsvm(self.rows, signs, weights, kernel="linear", C=self.C, tol=self.tol)
        else:
            alpha = max(1.0 / (len(signs) * self.C), 1e-9)
            learner = SGDClassifier(alpha=alpha, average=True, max_iter=SGD_EPOCHS, tol=None, random_state=self.seed)
            learner.fit(self.rows, signs, sample_weight=weights)
        return learner.coef_[0].astype(np.float64), float(learner.intercept_[0])

    @property
    def _passes(self) -> int:
        """Most passes over the rows: many where rows are few, as coordinate descent is slow in few dimensions."""
        return int(np.clip(LIBLINEAR_UPDATES // len(self.rows), 300, 50_000))

    def _give_up(self) -> bool:
        """liblinear did not converge: go over to LIBSVM where that is allowed and affordable."""
        over = self.solver == "auto" and len(self.rows) <= LIBSVM_LIMIT
        self.used = "libsvm" if over else self.used
        warnings.warn(
            f"liblinear did not converge in {self._passes} passes; "
            + ("LIBSVM was used instead (linear_solver_='libsvm')." if over else "its last iterate was used.")
            + " Hint: scale the features (RobustScaler), or set linear_solver.",
            ConvergenceWarning,
            stacklevel=2,
        )
        return over


@dataclass
class KernelFitter:
    """Kernel machines by LIBSVM on a kernel matrix (`gram`), or on the rows where that would be too large."""

    rows: Floats
    signs: Floats
    C: float
    kernel: str | KernelFunction
    gamma: float = 1.0
    gram: Floats | None = None
    tol: float = 1e-3

    def __post_init__(self) -> None:
        if self.gram is None and (self.kernel != "rbf" or len(self.rows) <= GRAM_LIMIT):
            self.gram = gram_matrix(self.rows, self.kernel, self.gamma)

    def __call__(self, weights: Floats) -> Fitted:
        """Fit every problem with these row weights."""
        alphas, intercepts = self.dual(weights)
        machine = support_machine(self.rows, alphas, intercepts, self.kernel, self.gamma)
        plain = self.gram @ alphas.T if self.gram is not None else machine.scores(self.rows) - intercepts
        return Fitted(machine, plain + intercepts, 0.5 * float(np.sum(alphas.T * plain)))

    def dual(self, weights: Floats) -> tuple[Floats, Floats]:
        """Signed dual coefficients (problems, rows) and intercepts."""
        fits = [self._fit(sign, weights) for sign in self.signs]
        return np.array([fit[0] for fit in fits]), np.array([fit[1] for fit in fits])

    def _fit(self, signs: Floats, weights: Floats) -> tuple[Floats, float]:
        if self.gram is not None:
            learner = _fit_libsvm(self.gram, signs, weights, kernel="precomputed", C=self.C, tol=self.tol)
        else:
            learner = _fit_libsvm(self.rows, signs, weights, kernel="rbf", gamma=self.gamma, C=self.C, tol=self.tol)
        alpha = np.zeros(len(signs))
        alpha[learner.support_] = learner.dual_coef_[0]
        return alpha, float(learner.intercept_[0])


def support_machine(
    rows: Floats, alphas: Floats, intercepts: Floats, kernel: str | KernelFunction, gamma: float
) -> Machine:
    """The machine with signed dual coefficients `alphas` (problems, rows), its zero rows left out."""
    used = np.flatnonzero(np.any(alphas != 0, axis=0))
    coefficients = np.ascontiguousarray(alphas[:, used])
    if kernel == "precomputed":
        return Machine("precomputed", coefficients, intercepts, support_rows=used)
    support = np.ascontiguousarray(rows[used].T)
    return Machine("rbf" if kernel == "rbf" else "callable", coefficients, intercepts, support, gamma=gamma)


@dataclass
class NystroemFitter:
    """A kernel machine on a few landmark rows: liblinear on Nystroem features, folded back into dual coefficients."""

    rows: Floats
    signs: Floats
    C: float
    kernel: str | KernelFunction
    gamma: float
    landmarks: Floats
    seed: int = 0
    linear: LinearFitter = field(init=False)

    def __post_init__(self) -> None:
        values, vectors = np.linalg.eigh(gram_matrix(self.landmarks, self.kernel, self.gamma))
        kept = values > 1e-10 * values.max()
        self._back = vectors[:, kept] / np.sqrt(values[kept])
        features = gram_matrix(self.rows, self.kernel, self.gamma, self.landmarks) @ self._back
        self.linear = LinearFitter(features, self.signs, self.C, "auto", self.seed)

    def __call__(self, weights: Floats) -> Fitted:
        """Fit every problem with these row weights."""
        flat = self.linear(weights)
        alphas = flat.machine.coefficients @ self._back.T
        machine = support_machine(self.landmarks, alphas, flat.machine.intercepts, self.kernel, self.gamma)
        return Fitted(machine, flat.scores, flat.half_norm)


def gram_matrix(rows: Floats, kernel: str | KernelFunction, gamma: float, others: Floats | None = None) -> Floats:
    """Kernel values between rows and `others` (the rows themselves by default)."""
    others = rows if others is None else others
    if kernel == "rbf":
        return rbf_kernel(rows, others, gamma=gamma)
    if kernel == "linear":
        return rows @ others.T
    gram = np.asarray(kernel(rows, others), dtype=np.float64)  # type: ignore[operator]
    if gram.shape != (len(rows), len(others)):
        raise InputError(
            f"The kernel function must return shape {(len(rows), len(others))}, but returned {gram.shape}. "
            "Hint: kernel(A, B) gives one row per row of A and one column per row of B."
        )
    return gram


def resolve_gamma(gamma: str | float, rows: Floats, weights: Floats) -> float:
    """`'scale'`: 1 / (p var of all cells); `'auto'`: 1 / p; `'robust'`: 1 / (p median of the non-zero column variances)."""
    if not isinstance(gamma, str):
        return float(gamma)
    p = rows.shape[1]
    share = weights / weights.sum()
    if gamma == "auto":
        return 1.0 / p
    if gamma == "scale":
        mean = float(np.sum(share @ rows)) / p
        variance = float(np.sum(share @ (rows - mean) ** 2)) / p
    else:
        columns: Any = share @ (rows - share @ rows) ** 2
        variance = float(np.median(columns[columns > 0])) if np.any(columns > 0) else 0.0
    return 1.0 / (p * variance) if variance > 0 else 1.0
