"""`GEMMEDClassifier`: a large-margin classifier that learns which of its training rows not to believe."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from goldseam.errors import ConvergenceWarning, DataWarning, InputError, ModelFileError, ParameterError
from goldseam.margin import checks, fitting, gibbs
from goldseam.margin.entropy import EuclideanRows, GramRows
from goldseam.margin.fields import Fields, TrainingRows, fit_fields, merge_copies, proven_field, warn_about_fields
from goldseam.margin.flips import MANY_FLIPS, STRONGER, flip_rate
from goldseam.margin.machines import KernelFunction, Machine, best_class
from goldseam.margin.probabilities import fit_curve, platt_probabilities
from goldseam.margin.solvers import (
    FieldPrior,
    FitMachine,
    Fitted,
    LiteralEntropy,
    LiteralPrior,
    Solution,
    carried_weights,
    literal_entropy,
    mean_field,
)
from goldseam.margin.trust import FieldSettings, Space, best_score, log_odds, margin_loss, trust_given_loss
from goldseam.model_checks import check_attributes, check_indices
from goldseam.validation import Saved

__all__ = ["GEMMEDClassifier"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class GEMMEDClassifier(Saved, ClassifierMixin, BaseEstimator):
    """Large-margin classifier for training rows some of which come from failed sensors, nobody knows which.

    Every row gets a trust: the probability that it is nominal. It comes from how sparse the surroundings of the row are
    within its class (the GEM field) and from the classifier's loss on it. Classifier and trust are fitted in turn.

    Features are not scaled: put `RobustScaler` in front. The field does not depend on the scale, an SVM does.

    Parameters
    ----------
    kernel : 'linear', 'rbf', 'precomputed' or callable
        A callable takes two arrays of rows and returns their kernel values.
    C : float
        Cost of a row with full trust. Where the loss does not count (`loss_strength` 0, the default of kernels other than
        linear) the trusted rows of a class carry the cost of the others, so that C is the cost of an average row; and an
        rbf machine, in which a row acts only locally, counts rows in full unless their class shows a second population.
    gamma : 'scale', 'robust', 'auto' or float
        Of the rbf kernel. `'scale'` uses the variance of all cells, which outliers inflate; `'robust'` the median
        column variance.
    n_neighbors : 'auto', int or float
        Neighbours per row within its class; a float is a fraction of the class, `'auto'` a quarter (5 if bipartite).
        Rows that failed together (segments of one recording) vouch for each other unless there are at least twice as many
        neighbours as such rows, or `groups` are given to `fit`.
    trust_prior, field_strength : float
        Prior trust p0, and how much the field counts (lambda).
    loss_strength : None, 'auto' or float
        How much the loss counts (beta). None is 1 for the linear kernel and 0 for others, where a loss says more about the
        shape of the boundary than about failures. For C above 1 use 1 / C. `'auto'` is for labels that may be wrong: 1 / C,
        or 4 / C where more than a tenth of the labels are on the wrong side even among the surest rows (`flip_rate_`).
    threshold : 'auto', 'gap' or 'literal'
        Where sparse begins; `'literal'` is the rule and the regulariser as printed in the paper (two classes only).
    solver : 'mean-field' or 'gibbs'
        `'gibbs'` is the paper's stochastic gradient with Gibbs sampling (two classes only).
    entropy : 'leave-one-out' or 'bipartite'
        Neighbours among all other rows, or across one random split as in the paper.
    max_reference : int
        Rows per class among which neighbours are looked for.
    repetition : bool
        Also distrust rows whose readings repeat in several columns more often than those columns' other values do: dead,
        stuck or clipped channels, which the sparse-region test cannot see.
    isolation : bool
        Also distrust, in a class that no gap parts, rows many of whose readings lie apart from all others of their columns:
        failures of varying severity. Looks at columns one by one, so unlike the rest of the field it sees rotations.
    class_weight : None, 'balanced' or dict
    linear_solver : 'auto', 'liblinear', 'primal', 'libsvm' or 'sgd'
        For the linear kernel. `'auto'` is liblinear, and LIBSVM (with a warning) where that does not converge; for more
        than 2000 rows, ten or more per column, it is Newton's method on the primal problem, exact to 1e-4.
    n_landmarks : None or int
        Fit kernel machines on this many Nystroem landmarks: for tables too long for LIBSVM.
    probability : 'platt' or 'sigmoid'
        A logistic curve fitted with trust as weights, or the plain sigmoid of the scores.
    missing : 'raise' or 'indicator'
        `'indicator'` accepts NaN: distances over shared columns, medians and indicators for the classifier.
    max_iter : None or int
        Rounds; None is 30 (mean field) or 200 (Gibbs).
    tol : float
        Largest change of a trust that counts as settled.
    n_jobs, random_state, verbose
        As usual.

    Attributes
    ----------
    sample_trust_ : array (rows,)
        Trust of the training rows.
    field_ : array (rows,)
        The field before it is clipped; ranks rows even where the trust is saturated.
    thresholds_, scales_, n_kept_, n_neighbors_ : arrays (classes,)
        The entropy threshold of each class, its scale, the distinct rows below it, the neighbours used.
    objective_ : array (rounds,)
        What mean field lowers.
    mu_ : array (classes,)
        Duals of the printed regulariser (`threshold='literal'` only).
    loss_strength_, flip_rate_ : float
        The beta used and, with `loss_strength='auto'`, the share of wrong labels that it was chosen by.
    machine_ : Machine
        The classifier as plain arrays.
    classes_, n_iter_, linear_solver_, n_features_in_
        As usual; `linear_solver_` is the one that ran.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2, 1, (60, 2)), rng.normal(2, 1, (60, 2)), [[90.0, 80.0]]])
    >>> y = np.array(["left"] * 60 + ["right"] * 60 + ["left"])
    >>> model = GEMMEDClassifier().fit(X, y)
    >>> bool(model.sample_trust_[-1] < 0.01), model.predict([[3.0, 3.0]])
    (True, array(['right'], dtype='<U5'))
    """

    def __init__(
        self,
        kernel: str | KernelFunction = "linear",
        C: float = 1.0,
        *,
        gamma: str | float = "scale",
        n_neighbors: str | int | float = "auto",
        trust_prior: float = 0.5,
        field_strength: float = 2.0,
        loss_strength: float | str | None = None,
        threshold: str = "auto",
        solver: str = "mean-field",
        entropy: str = "leave-one-out",
        max_reference: int = 2000,
        repetition: bool = True,
        isolation: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        linear_solver: str = "auto",
        n_landmarks: int | None = None,
        probability: str = "platt",
        missing: str = "raise",
        max_iter: int | None = None,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.trust_prior = trust_prior
        self.field_strength = field_strength
        self.loss_strength = loss_strength
        self.threshold = threshold
        self.solver = solver
        self.entropy = entropy
        self.max_reference = max_reference
        self.repetition = repetition
        self.isolation = isolation
        self.class_weight = class_weight
        self.linear_solver = linear_solver
        self.n_landmarks = n_landmarks
        self.probability = probability
        self.missing = missing
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def check_state(self) -> None:
        """A model file whose parts do not belong together is refused."""
        if not hasattr(self, "machine_"):
            return
        check_attributes(
            self, machine_=Machine, _fields=Fields, _indicated=Ints, _medians=Floats, _references=tuple[Floats, ...],
            _diagonal=Floats, field_=Floats, _curve=tuple[float, float], classes_=np.ndarray,
            n_features_in_=int,
        )  # fmt: skip
        checks.check_parameters(self)
        p, n_scores = self.n_features_in_, len(self.classes_) if len(self.classes_) > 2 else 1
        check_indices("indicated columns", self._indicated, 0, p)
        self._fields.check_for(p, len(self.field_), None if self._pairwise else self._references)
        if self.machine_.support_rows is not None:
            check_indices("support rows", self.machine_.support_rows, 0, p)
        told = (self.machine_.n_columns in (p + self._indicated.size, None), self._medians.shape == (p,))
        if (
            not all(told)
            or len(self.machine_.coefficients) != n_scores
            or len(self._fields.classes) != len(self.classes_)
        ):
            raise ModelFileError(
                f"The model file's machine must be over {p + self._indicated.size} columns and {len(self.classes_)} classes."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        tags.input_tags.allow_nan = self._finite == "allow-nan"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Learn the classifier and the trust of every row.

        Rows that share a value of `groups` (a recording, a device) do not count as neighbours of each other.
        """
        checks.check_parameters(self)
        X, y = self._validated(X, y)
        self.classes_, codes = checks.encode_labels(y)
        weights = checks.row_weights(sample_weight, X)
        weights = weights * checks.class_weights(self.class_weight, self.classes_, codes, weights)
        group_codes = checks.encode_groups(groups, len(X))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        training = merge_copies(X, codes, weights, group_codes, seed)
        checks.require_all_classes(training.codes, self.classes_)
        rows = self._learn_imputation(X[training.first])
        space = self._space(X, training)
        settings = self._settings()
        fields_rng = np.random.default_rng(seed)
        self._fields, g, sparse = fit_fields(space, training.codes, len(self.classes_), settings, fields_rng)
        warn_about_fields(self._fields, self.classes_.tolist(), settings)
        solution = self._solve(space, rows, training, g, sparse, seed)
        self._keep(X, training, solution)
        self._keep_trust(X, codes, training, g, solution.trust)
        weights = training.weights * solution.trust
        self._curve = fit_curve(self.probability, solution.fitted.scores, training.codes, weights)
        self._warn_about(solution, training)
        return self

    def _validated(self, X: Any, y: Any) -> tuple[Floats, NDArray[Any]]:
        checks.require_plain_labels(y)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite, ensure_min_samples=2)
        check_classification_targets(y)
        checks.require_moderate_values(X)
        if self._pairwise and X.shape[0] != X.shape[1]:
            raise InputError(
                f"A precomputed kernel must be square, but has shape {X.shape}. Hint: pass K(X, X) to fit."
            )
        if self._pairwise and self.n_landmarks is not None:
            raise ParameterError(
                f"n_landmarks must be None with kernel='precomputed', but is {self.n_landmarks}: landmarks need a kernel "
                "that can be evaluated. Hint: pass the kernel as a function."
            )
        return X, y

    def _settings(self) -> FieldSettings:
        product = self.threshold != "literal"
        return FieldSettings(
            self.n_neighbors,
            self.threshold,
            self.entropy,
            self.max_reference,
            repetition=self.repetition and product,
            isolation=self.isolation and product,
        )

    def _space(self, X: Floats, training: TrainingRows) -> Space:
        if self._pairwise:
            return GramRows(X[np.ix_(training.first, training.first)], training.groups)
        return EuclideanRows(X[training.first], training.groups, self.n_jobs)

    @property
    def _pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def _radial(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "rbf"

    @property
    def _finite(self) -> Any:
        """What scikit-learn may let pass: NaN where it means "not observed", which no kernel value can be."""
        return "allow-nan" if self.missing == "indicator" and not self._pairwise else True

    def _learn_imputation(self, rows: Floats) -> Floats:
        """Medians and indicator columns (G5.7); returns the rows as the classifier sees them."""
        self._indicated = np.flatnonzero(np.isnan(rows).any(axis=0))
        seen = ~np.isnan(rows).all(axis=0)
        self._medians = np.zeros(rows.shape[1])
        self._medians[seen] = np.nanmedian(rows[:, seen], axis=0)
        return self._complete(rows)

    def _complete(self, rows: Floats) -> Floats:
        missing = np.isnan(rows)
        if not self._indicated.size and not missing.any():
            return rows
        filled = np.where(missing, self._medians, rows)
        return np.ascontiguousarray(np.column_stack([filled, missing[:, self._indicated].astype(np.float64)]))

    # ---- solving

    def _first_loss_strength(self) -> float:
        if isinstance(self.loss_strength, str):
            return 1.0 / self.C
        if self.loss_strength is None:
            return float(self._linear)
        return float(self.loss_strength)

    def _solve(
        self, space: Space, rows: Floats, training: TrainingRows, g: Floats, sparse: Floats, seed: int
    ) -> Solution:
        signs = fitting.class_signs(training.codes, len(self.classes_))
        self.loss_strength_ = self._first_loss_strength()
        if self.threshold == "literal" or self.solver == "gibbs":
            checks.require_two_classes(self.classes_, self.solver, self.threshold)
        if self.solver == "gibbs":
            return self._solve_gibbs(space, rows, training, g, signs, seed)
        fit_machine = self._fitter(space, rows, training, signs, seed)
        if isinstance(self.loss_strength, str):
            return self._solve_for_strength(fit_machine, training, g)
        rule: Any = FieldPrior(log_odds(g, self.trust_prior, self.field_strength), self.loss_strength_)
        if self.threshold == "literal":
            rule = LiteralPrior(self._literal(space, training, seed), self.trust_prior, self.loss_strength_)
        elif self.loss_strength_ == 0 and isinstance(space, EuclideanRows) and self._radial:
            proven = proven_field(self._fields, g, sparse, space.rows, training.codes, isolation=self.isolation)
            acted = FieldPrior(log_odds(proven, self.trust_prior, self.field_strength), 0.0)
            return replace(self._mean_field(fit_machine, acted, training), trust=rule.start())
        solution = self._mean_field(fit_machine, rule, training)
        if self.threshold == "literal":
            self.mu_ = rule.duals
        return solution

    def _mean_field(self, fit_machine: FitMachine, rule: Any, training: TrainingRows) -> Solution:
        weights = training.weights
        if self.loss_strength_ == 0:
            weights = carried_weights(weights, rule.start(), training.codes)
        most = self.max_iter or 30
        solution = mean_field(fit_machine, rule, training.codes, weights, C=self.C, max_iter=most, tol=self.tol)
        self.linear_solver_ = getattr(fit_machine, "used", None)
        if self.verbose:
            print(
                f"{solution.n_iter} rounds, objective {solution.objectives[-1]:.6g}, last change {solution.change:.2g}"
            )
        return solution

    def _solve_for_strength(self, fit_machine: FitMachine, training: TrainingRows, g: Floats) -> Solution:
        """beta = 1 / C; four times that if the first solution shows many labels on the wrong side."""
        odds = log_odds(g, self.trust_prior, self.field_strength)
        solution = self._mean_field(fit_machine, FieldPrior(odds, self.loss_strength_), training)
        self.flip_rate_ = flip_rate(solution.fitted.scores, training.codes, g, training.weights)
        if self.flip_rate_ > MANY_FLIPS:
            self.loss_strength_ = STRONGER / self.C
            solution = self._mean_field(fit_machine, FieldPrior(odds, self.loss_strength_), training)
        return solution

    def _fitter(self, space: Space, rows: Floats, training: TrainingRows, signs: Floats, seed: int) -> FitMachine:
        self._gamma = fitting.resolve_gamma(self.gamma, rows, training.weights) if self.kernel == "rbf" else 1.0
        if self._linear:
            return fitting.LinearFitter(rows, signs, self.C, self.linear_solver, seed)
        if isinstance(space, GramRows):
            return fitting.KernelFitter(rows, signs, self.C, self.kernel, gram=space.gram)
        if self.n_landmarks is not None:
            landmarks = rows[: self.n_landmarks]
            return fitting.NystroemFitter(rows, signs, self.C, self.kernel, self._gamma, landmarks, seed)
        return fitting.KernelFitter(rows, signs, self.C, self.kernel, self._gamma)

    def _literal(self, space: Space, training: TrainingRows, seed: int) -> LiteralEntropy:
        found = literal_entropy(
            space,
            training.codes,
            n_neighbors=self.n_neighbors,
            dimension=float(self.n_features_in_),
            bipartite=self.entropy == "bipartite",
            rng=np.random.default_rng(seed),
        )
        sizes = np.bincount(training.codes)
        for label, kept, size in zip(self.classes_.tolist(), found.n_kept, sizes, strict=True):
            if kept < 0.4 * size:
                warnings.warn(
                    f"Class {label!r}: the printed gap rule keeps {kept} of {size} rows. Hint: threshold='auto'.",
                    DataWarning,
                    stacklevel=4,
                )
        return found

    def _solve_gibbs(
        self, space: Space, rows: Floats, training: TrainingRows, g: Floats, signs: Floats, seed: int
    ) -> Solution:
        self._gamma = fitting.resolve_gamma(self.gamma, rows, training.weights) if self.kernel == "rbf" else 1.0
        gram = space.gram if isinstance(space, GramRows) else fitting.gram_matrix(rows, self.kernel, self._gamma)
        start = fitting.KernelFitter(rows, signs, self.C, self.kernel, self._gamma, gram)
        alpha = np.abs(start.dual(training.weights)[0][0])
        literal = self._literal(space, training, seed) if self.threshold == "literal" else None
        n_iter = self.max_iter or 200
        result = gibbs.gibbs(
            gibbs.linear_features(rows) if self._linear else gibbs.kernel_features(gram),
            signs[0],
            alpha=alpha,
            upper=self.C * training.weights,
            prior=self.trust_prior,
            rng=np.random.default_rng(seed),
            entropy=literal,
            n_iter=n_iter,
            field_odds=log_odds(g, 0.5, self.field_strength),
        )
        if literal is not None:
            self.mu_ = result.duals
        self.linear_solver_ = None
        if self._linear:
            machine = Machine("linear", result.predictor[None, :-1].copy(), result.predictor[-1:].copy())
        else:
            machine = fitting.support_machine(rows, result.predictor[None, :], np.zeros(1), self.kernel, self._gamma)
        fitted = Fitted(machine, result.scores[:, None], float("nan"))
        return Solution(fitted, result.trust, (), n_iter, float("nan"))

    # ---- what is kept

    def _keep(self, X: Floats, training: TrainingRows, solution: Solution) -> None:
        machine = solution.fitted.machine
        if machine.kind == "precomputed":
            machine = replace(machine, support_rows=training.first[machine.support_rows])
        self.machine_ = machine
        self._fields = self._fields.at(training)
        self._references = () if self._pairwise else self._fields.references(X)
        self._diagonal = np.diag(X).copy() if self._pairwise else np.empty(0)
        self.thresholds_, self.scales_ = self._fields.each("threshold"), self._fields.each("scale")
        self.n_kept_, self.n_neighbors_ = self._fields.each("n_kept"), self._fields.each("n_neighbors")
        self.objective_ = np.array(solution.objectives)
        self.n_iter_ = solution.n_iter

    def _keep_trust(self, X: Floats, codes: Ints, training: TrainingRows, g: Floats, trust: Floats) -> None:
        """Trust and field for the caller's rows; those that took no part are judged like new rows of their class."""
        left_out = np.setdiff1d(np.arange(len(X)), training.counted)
        fill_g, fill_trust = np.zeros(len(X)), np.zeros(len(X))
        if left_out.size:
            rows = X[left_out]
            fill_g[left_out] = self._class_scores(rows)[codes[left_out], np.arange(len(rows))]
            odds = log_odds(fill_g[left_out], self.trust_prior, self.field_strength)
            loss = margin_loss(self._scores(rows), codes[left_out], self.C)
            fill_trust[left_out] = trust_given_loss(odds, loss, self.loss_strength_)
            fill_trust[np.isnan(X).all(axis=1)] = 0.0
        self.field_ = training.spread(g, fill_g)
        self.sample_trust_ = training.spread(trust, fill_trust)

    def _warn_about(self, solution: Solution, training: TrainingRows) -> None:
        if not solution.settled:
            _warn(
                f"Trust had not settled after {solution.n_iter} rounds: it last moved by {solution.change:.2g}, "
                f"tol={self.tol:g}. Hint: raise max_iter.",
                ConvergenceWarning,
            )
        sizes = np.bincount(training.codes)
        for label, kept, size in zip(
            self.classes_.tolist(), np.bincount(training.codes, solution.trust), sizes, strict=True
        ):
            if kept < 0.2 * size and self.solver == "mean-field":
                _warn(
                    f"Class {label!r}: the trust of its {size} rows sums to {kept:.3g} only. Hint: look at field_.",
                    DataWarning,
                )
        chosen = best_class(solution.fitted.scores)
        if np.all(chosen == chosen[0]):
            _warn(
                f"The classifier gives every training row the class {self.classes_.tolist()[chosen[0]]!r}. "
                "Hint: scale the features, or try another C.",
                DataWarning,
            )

    # ---- new rows

    def _new_rows(self, X: Any) -> Floats:
        check_is_fitted(self, "machine_")
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=self._finite)
        checks.require_moderate_values(X)
        return X

    def _scores(self, rows: Floats) -> Floats:
        kernel = self.kernel if callable(self.kernel) else None
        return self.machine_.scores(self._complete(rows), kernel)

    def _class_scores(self, rows: Floats) -> Floats:
        """g of rows against every class, shape (classes, rows)."""
        if not self._pairwise:
            return self._fields.scores(rows, self._references, self.n_jobs)
        return self._fields.gram_scores(rows, self._diagonal)

    def decision_function(self, X: Any) -> Floats:
        """f of each row: one column less dimension for two classes (positive means `classes_[1]`), else one per class."""
        scores = self._scores(self._new_rows(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        codes = best_class(self._scores(self._new_rows(X)))
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities by the curve that `probability` names."""
        return platt_probabilities(self._scores(self._new_rows(X)), *self._curve)

    def trust(self, X: Any) -> Floats:
        """Trust of new rows by the field of the class they fit best (G-23); no label is needed."""
        rows = self._new_rows(X)
        trust = expit(log_odds(best_score(self._class_scores(rows)), self.trust_prior, self.field_strength))
        return np.where(np.isnan(rows).all(axis=1), 0.0, trust)

    def trust_score(self, X: Any) -> Floats:
        """t of (G-23), not clipped below: negative means suspicious."""
        return best_score(self._class_scores(self._new_rows(X)))

    @property
    def coef_(self) -> Floats:
        """Weights of a linear classifier, (1, columns) for two classes, else one row per class."""
        if self.machine_.kind != "linear":
            raise AttributeError("coef_ is only there with kernel='linear'.")
        return self.machine_.coefficients

    @property
    def intercept_(self) -> Floats:
        """Intercepts of the scores."""
        return self.machine_.intercepts


def _warn(message: str, category: type[Warning]) -> None:
    warnings.warn(message, category, stacklevel=4)
