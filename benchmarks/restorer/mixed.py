"""Everything at once: noise .2 in every row, a tenth of the cells gone, and intervals or gross errors in half of the rows."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import write_results
from benchmarks.restorer.tables import load_case
from goldseam import CorruptionSeparator, RandomMixedField, Restorer
from goldseam.contamination import features
from goldseam.corruption.protocols import peer_protocol
from goldseam.denoising import MOST_COLUMNS
from goldseam.schema import MISSING, Blocks, Kind

SETS = ("adult", "credit-approval", "german", "image-segmentation", "wdbc", "skab", "usps01")
NOISE, GAPS = 0.2, 0.1
MOST = 9.0  # a number counts at most three standard deviations


def main(quick: bool) -> None:
    rows = []
    for name in SETS[1:3] if quick else SETS:
        for kind in ("interval", "scale"):
            runs = [measured(name, kind, seed) for seed in range(1)]
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            rows.append({"set": name, "errors": kind, **mean})
            print(rows[-1], flush=True)
    notes = """Quality: 1 - (squared errors of numbers in sd, at most 9 each, + wrong categories) / the same for the damaged
table with its gaps filled by means and modes, over all cells. Every method is fitted on the same clean reference. restorer:
defaults; evidence alone: denoise=False; field: noise and gross errors estimated; separator: defaults, categories left alone.
Accuracy: logistic regression trained on the clean reference. One seed. usps01: a field that is learnt
by pairs takes too long for 256 numbers; the restorer denoises such tables by a Gaussian field."""
    write_results("restorer-mixed", rows, title="Noise, gaps and localised errors together", notes=notes, quick=quick)


def measured(name: str, kind: str, seed: int) -> dict[str, float]:
    case = load_case(name, seed)
    rng = np.random.default_rng(seed)
    reference, truth = case.blocks(case.reference), case.blocks(case.incoming)
    dirty = hurt(truth, reference, case.schema, kind, rng)
    table = case.frame(dirty, case.incoming)
    settings = {"audit": False, "kinds": case.kinds, "random_state": seed}
    answers = {"do nothing": _plain(dirty, reference)}
    answers["restorer"] = case.blocks(Restorer(**settings).fit(case.reference).restore(table).table)
    alone = Restorer(**settings, denoise=False).fit(case.reference)
    answers["evidence alone"] = case.blocks(alone.restore(table).table)
    if len(case.kinds) <= MOST_COLUMNS:
        field = RandomMixedField(noise="estimate", gross_error_rate="estimate", kinds=case.kinds, random_state=seed)
        answers["field"] = case.blocks(_as_frame(field.fit(case.reference).estimate_noise(table).transform(table)))
    if not case.schema.categories:
        separator = CorruptionSeparator().fit(case.reference.to_numpy())
        answers["separator"] = Blocks(np.asarray(separator.transform(table.to_numpy())), dirty.codes)
    sd = np.maximum(reference.numbers.std(axis=0), 1e-12)
    error = {what: _error(_plain(blocks, reference), truth, sd) for what, blocks in answers.items()}
    out = {what: 1.0 - error[what] / error["do nothing"] for what in answers}
    if case.labels is not None:
        out |= _accuracy(case, answers, reference, truth)
    return out


def hurt(truth: Blocks, reference: Blocks, schema, kind, rng) -> Blocks:  # type: ignore[no-untyped-def]
    """Noise on every number, flips of categories, one kind of localised errors, gaps."""
    errors = peer_protocol(truth, schema, reference, kind, rng).blocks
    numbers = errors.numbers + NOISE * reference.numbers.std(axis=0) * rng.standard_normal(errors.numbers.shape)
    whole = [j for j, column in enumerate(schema.numbers) if column.kind is Kind.INTEGER]
    numbers[:, whole] = np.rint(numbers[:, whole])
    codes = errors.codes.copy()
    for j, column in enumerate(schema.categories):
        hit = rng.random(len(codes)) < NOISE
        codes[hit, j] = rng.integers(len(column.levels), size=int(hit.sum()))
    numbers[rng.random(numbers.shape) < GAPS] = np.nan
    codes[rng.random(codes.shape) < GAPS] = MISSING
    return Blocks(numbers, codes)


def _plain(blocks: Blocks, reference: Blocks) -> Blocks:
    """Gaps filled by means and modes."""
    mode = [np.bincount(column[column >= 0]).argmax() for column in reference.codes.T]
    numbers = np.where(np.isnan(blocks.numbers), reference.numbers.mean(axis=0), blocks.numbers)
    return Blocks(numbers, np.where(blocks.codes < 0, np.array(mode, dtype=np.int32), blocks.codes).astype(np.int32))


def _error(blocks: Blocks, truth: Blocks, sd) -> float:  # type: ignore[no-untyped-def]
    square = ((blocks.numbers - truth.numbers) / sd) ** 2
    return float(np.minimum(square, MOST).sum() + (blocks.codes != truth.codes).sum())


def _accuracy(case, answers, reference, truth):  # type: ignore[no-untyped-def]
    model = LogisticRegression(max_iter=2000).fit(features(reference, case.schema), case.labels[0])
    score = lambda blocks: float(model.score(features(_plain(blocks, reference), case.schema), case.labels[1]))  # noqa: E731
    shown = {
        "accuracy original": truth,
        "accuracy before": answers["do nothing"],
        "accuracy after": answers["restorer"],
    }
    return {what: score(blocks) for what, blocks in shown.items()}


def _as_frame(table):  # type: ignore[no-untyped-def]
    import polars as pl

    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)
