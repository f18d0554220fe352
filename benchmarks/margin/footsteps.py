"""Footstep substitute (G7.4): four sensors and their fusion, three simulated sets, linear and rbf, ten splits each.

Ten splits leave GEM - SVM a standard error of one to three points, so sets 0-2 are measured on fifty as well.

Set 0 was used for design choices (splits 0-9), sets 1 and 2 (splits 100-109) were looked at when the second hump of the
threshold was found; sets 3 to 5 come after the three that are asked for. 3 and 4 are held out for the linear machines,
5 for all but one rule: that trusted rows carry the cost of the others (rbf) was chosen with sight of sets 0-4, that an rbf
machine wants proof with sight of sets 0-2 and 5, where it moved no mean of ten splits by more than .2.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.harness import write_results
from benchmarks.peers.robust_classifiers import filtered, libsvm, lof, ramp, rod
from goldseam.datasets.footstep import FootstepStudy, make_footsteps, split_footsteps
from goldseam.margin import GEMMEDClassifier
from goldseam.margin.fusion import gated_sum

LINEAR = {"C": 10.0, "loss_strength": 0.1, "linear_solver": "libsvm"}
RADIAL = {"kernel": "rbf", "gamma": 0.5, "C": 1.0}
# G7.4, linear: SVM, GEM auto, oracle per sensor; set 0 is dev, set 1 held out
REFERENCE = {
    (0, 1): (75.1, 82.2, 87.2), (0, 2): (72.9, 85.0, 84.7), (0, 3): (76.6, 77.6, 81.3), (0, 4): (83.7, 87.0, 88.4),
    (1, 1): (76.4, 78.2, 88.1), (1, 2): (80.0, 81.7, 83.8), (1, 3): (64.9, 70.2, 77.3), (1, 4): (78.8, 87.4, 88.4),
}  # fmt: skip
RADIAL_REFERENCE = {
    (1, 1): (83.0, 82.1, 88.9),
    (1, 2): (84.5, 84.6, 84.2),
    (1, 3): (71.3, 69.9, 72.5),
    (1, 4): (89.4, 88.7, 89.3),
}
FUSION_REFERENCE = {
    "concatenated SVM": (71.7, 73.7), "concatenated GEM": (73.0, 72.2), "sum of SVMs": (78.7, 78.8), "sum of GEM": (82.4, 83.5),
    "hard gate": (84.9, 83.8), "soft gate": (84.8, 84.0), "gate by truth": (87.7, 86.2),
}  # fmt: skip
RIVAL_SPLITS = 3
MORE_SPLITS = 50
HELD_OUT = (3, 4, 5)
MODES = ("burst", "drift", "dropout", "dead", "saturation")
PAPER = {1: (71.1, 76.0, 78.4), 2: (62.3, 76.5, 82.1), 3: (60.0, 67.6, 66.8), 4: (58.4, 73.2, 80.1)}
PAPER_DETECTION = {1: 70.5, 2: 63.4, 3: 72.8, 4: 88.1}


def prepare(features: Any, train: Any, test: Any) -> tuple[Any, Any]:
    """PCA to 50 without standardising, fitted on the (contaminated) training part, divided by the median norm."""
    pca = PCA(50, random_state=0).fit(features[train])
    A, T = pca.transform(features[train]), pca.transform(features[test])
    norm = np.median(np.linalg.norm(A, axis=1))
    return A / norm, T / norm


def accuracy(predicted: Any, truth: Any) -> float:
    return 100 * float(np.mean(predicted == truth))


def one_split(
    study: FootstepStudy, split: int, settings: dict[str, Any], recordings: bool, rivals: bool
) -> dict[str, Any]:
    """Everything measured on one split, for all sensors."""
    train, test = split_footsteps(study, split)
    y, truth = study.target[train], study.target[test]
    kernel = {"kernel": "rbf", "gamma": 0.5} if "kernel" in settings else {}
    fit = lambda X, t: libsvm(X, t, C=settings["C"], **kernel)  # noqa: E731
    out: dict[str, Any] = {"votes": {}}
    for j in range(4):
        A, T = prepare(study.features[:, j], train, test)
        bad, clean = study.failed[train, j], ~study.failed[test, j]
        groups = study.subject[train] if recordings else None
        gem = GEMMEDClassifier(random_state=0, **settings).fit(A, y, groups=groups)
        svm, perfect = fit(A, y), fit(A[~bad], y[~bad])
        score = lambda model: accuracy(model.predict(T[clean]), truth[clean])  # noqa: B023, E731
        found = {"SVM": score(svm), "GEM": score(gem), "oracle": score(perfect)}
        found["LOF + SVM"] = score(filtered(A, y, lof, fit))
        if rivals:
            found |= {"ROD-.2": score(rod(A, y, 0.2, fit, rounds=6)), "ramp": score(ramp(A, y, fit, rounds=6))}
        flagged = gem.sample_trust_ < 0.5
        found |= {
            "AP": average_precision_score(bad, -gem.field_),
            "FA": flagged[~bad].mean(),
            "det": flagged[bad].mean(),
        }
        for mode in np.unique(study.mode[train, j][bad]):
            chosen = study.mode[train, j] == mode
            found[f"AUC {mode}"] = roc_auc_score(chosen[chosen | ~bad], -gem.field_[chosen | ~bad])
        out[j] = found
        votes = (svm.decision_function(T), gem.decision_function(T), gem.trust_score(T), gem.trust(T))
        out["votes"][j] = (*votes, clean)
    out["fusion"] = fuse(study, train, test, out["votes"], settings)
    return out


def fuse(study: FootstepStudy, train: Any, test: Any, votes: Any, settings: dict[str, Any]) -> dict[str, float]:
    """Accuracy of the fusions on all test segments, corrupted ones too."""
    y, truth = study.target[train], study.target[test]
    parts = [prepare(study.features[:, j], train, test) for j in range(4)]
    A, T = np.hstack([p[0] for p in parts]), np.hstack([p[1] for p in parts])
    kernel = {"kernel": "rbf", "gamma": 0.5} if "kernel" in settings else {}
    svm, gem, score, trust, sound = (np.stack([votes[j][i] for j in range(4)]) for i in range(5))
    ones = np.ones_like(svm)
    side = lambda scores, gates: np.where(gated_sum(scores[:, :, None], gates, 2.0)[:, 0] > 0, 1, -1)  # noqa: E731
    predicted = {
        "concatenated SVM": libsvm(A, y, C=settings["C"], **kernel).predict(T),
        "concatenated GEM": GEMMEDClassifier(random_state=0, **settings).fit(A, y).predict(T),
        "sum of SVMs": side(svm, ones),
        "sum of GEM": side(gem, ones),
        "hard gate": side(gem, (score > 0).astype(float)),
        "soft gate": side(gem, trust),
        "gate by truth": side(gem, sound.astype(float)),
    }
    return {name: accuracy(values, truth) for name, values in predicted.items()}


def gains(study: FootstepStudy, numbers: range, settings: dict[str, Any], recordings: bool) -> list[dict[int, float]]:
    """GEM minus SVM, split by split, of each sensor."""
    kernel = {"kernel": "rbf", "gamma": 0.5} if "kernel" in settings else {}
    found = []
    for split in numbers:
        train, test = split_footsteps(study, split)
        y, groups = study.target[train], study.subject[train] if recordings else None
        gain = {}
        for j in range(4):
            A, T = prepare(study.features[:, j], train, test)
            clean = ~study.failed[test, j]
            models = (
                GEMMEDClassifier(random_state=0, **settings).fit(A, y, groups=groups),
                libsvm(A, y, C=settings["C"], **kernel),
            )
            gem, svm = (accuracy(model.predict(T[clean]), study.target[test][clean]) for model in models)
            gain[j] = gem - svm
        found.append(gain)
    return found


def standard_error(values: list[float]) -> float | None:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def mean_of(splits: list[dict[str, Any]], j: int, key: str) -> float:
    values = [split[j][key] for split in splits if key in split[j]]
    return float(np.mean(values)) if values else float("nan")


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    fusion_rows: list[dict[str, Any]] = []
    for seed in (0,) if quick else (0, 1, 2, *HELD_OUT):
        study = make_footsteps(seed)
        numbers = range(1) if quick else range(10) if seed == 0 else range(100, 110)
        for name, settings, recordings in (
            ("linear", LINEAR, False), ("linear, groups", LINEAR, True), ("rbf", RADIAL, False),
        ):  # fmt: skip
            splits = [
                one_split(study, split, settings, recordings, i < RIVAL_SPLITS and not recordings)
                for i, split in enumerate(numbers)
            ]
            more = range(numbers.stop, numbers.start + (2 if quick else MORE_SPLITS))
            further = [] if seed in HELD_OUT else gains(study, more, settings, recordings)
            rows += [sensor_row(splits, further, seed, j, name) for j in range(4)]
            for method in FUSION_REFERENCE:
                values = [split["fusion"][method] for split in splits]
                reference = FUSION_REFERENCE[method][seed] if name == "linear" and seed < 2 else None
                measured = {"accuracy": np.mean(values), "sd": np.std(values), "reference": reference}
                fusion_rows.append({"set": seed, "model": name, "fusion": method, **measured})
            print(seed, name, "done", flush=True)
    summary = "; ".join(
        f"{name}, {title}, {count}: mean {np.mean(chosen):+.2f}, worst {np.min(chosen):+.2f}"
        for name in ("linear", "linear, groups", "rbf")
        for title, sets in (("sets 0-2", (0, 1, 2)), ("held-out sets", HELD_OUT))
        for count in ("10 splits", f"{MORE_SPLITS} splits")
        if (
            chosen := [
                r[f"gain, {count}"] for r in rows if r["model"] == name and r["set"] in sets and r[f"gain, {count}"]
            ]
        )
    )
    notes = (
        f"Accuracy in % on test segments whose sensor is sound. 'gain' is GEM minus SVM, paired by split; "
        f"over sensors and sets: {summary}. "
        "Set 0 was used for design choices, sets 1 and 2 were looked at for the rule of the second hump; sets 3 to 5 are held "
        "out for the linear machines. Rbf: loss_strength 0 was decided on splits 100-103 of set 1, that trusted rows carry the "
        "cost of the others with sight of sets 0-4, that distrust wants proof with sight of sets 0-2 and 5. A first version of "
        "the simulator standardised the features and had other failure modes; GEM's detection was near chance there: this "
        "version favours its assumption. Saturation stays invisible. "
        "ROD and ramp: the first 3 splits only. 'groups': segments of one subject do not count as neighbours. "
        "The paper's own figures (real recordings, kernel MED / "
        "ROD-.2 / GEM-MED) are not comparable."
    )
    write_results("margin-footsteps", rows, title="Footstep substitute: sensors", notes=notes, quick=quick)
    write_results(
        "margin-footsteps-fusion", fusion_rows, title="Footstep substitute: fusion",
        notes="Accuracy in % on all test segments, corrupted ones too. The paper: kernel MED 78.6, ROD-.2 79.8, GEM-MED 84.0.",
        quick=quick,
    )  # fmt: skip


def sensor_row(
    splits: list[dict[str, Any]], further: list[dict[int, float]], seed: int, j: int, name: str
) -> dict[str, Any]:
    reference = (RADIAL_REFERENCE if name == "rbf" else REFERENCE).get((seed, j + 1))
    row: dict[str, Any] = {"set": seed, "model": name, "sensor": j + 1}
    row |= {key: mean_of(splits, j, key) for key in ("SVM", "ROD-.2", "ramp", "LOF + SVM", "GEM", "oracle")}
    first = [split[j]["GEM"] - split[j]["SVM"] for split in splits]
    all_splits = first + [gain[j] for gain in further]
    for count, values in (("10 splits", first), (f"{MORE_SPLITS} splits", all_splits if further else [])):
        row |= {f"gain, {count}": float(np.mean(values)) if values else None}
        row |= {f"standard error, {count}": standard_error(values)}
    row["reference SVM/GEM/oracle"] = "/".join(map(str, reference)) if reference else None
    row["paper MED/ROD-.2/GEM"] = "/".join(map(str, PAPER[j + 1]))
    row |= {key: mean_of(splits, j, key) for key in ("AP", "FA", "det")}
    row["paper detection %"] = PAPER_DETECTION[j + 1]
    return row | {
        f"AUC {mode}": mean_of(splits, j, f"AUC {mode}") for mode in ("burst", "drift", "dropout", "dead", "saturation")
    }
