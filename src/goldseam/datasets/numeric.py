"""Purely numeric tables, spectra and vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import Flat, check_choice, continuous, load_flat
from goldseam.datasets.locate import require_folder
from goldseam.datasets.openml import OpenML
from goldseam.datasets.reading import read_numbers
from goldseam.datasets.sources import describe
from goldseam.errors import ParameterError

__all__ = [
    "load_cellwise_glass",
    "load_cellwise_philips",
    "load_g241c",
    "load_g241n",
    "load_ida_banana",
    "load_ida_heart",
    "load_ida_ringnorm",
    "load_ida_twonorm",
    "load_ida_waveform",
    "load_image_segmentation",
    "load_ionosphere",
    "load_new_thyroid",
    "load_pima_diabetes",
    "load_sonar",
]

_SONAR = Flat(
    "sonar",
    continuous([f"band_{i}" for i in range(1, 61)]),
    files={"all": "sonar.all-data"},
    openml=OpenML(40, labels={"Rock": "R", "Mine": "M"}),
    n_rows=208,
)
_IONOSPHERE = Flat(
    "ionosphere",
    continuous([f"pulse_{i}_{part}" for i in range(1, 18) for part in ("real", "imaginary")]),
    files={"all": "ionosphere.data"},
    openml=OpenML(59),
    n_rows=351,
)
_SEGMENTATION = Flat(
    "image-segmentation",
    continuous(
        [
            "region_centroid_col",
            "region_centroid_row",
            "region_pixel_count",
            "short_line_density_5",
            "short_line_density_2",
            "vedge_mean",
            "vedge_sd",
            "hedge_mean",
            "hedge_sd",
            "intensity_mean",
            "rawred_mean",
            "rawblue_mean",
            "rawgreen_mean",
            "exred_mean",
            "exblue_mean",
            "exgreen_mean",
            "value_mean",
            "saturation_mean",
            "hue_mean",
        ]
    ),
    files={"train": "segmentation.data", "test": "segmentation.test.gz"},
    target=0,
    skip=5,
    openml=OpenML(
        36,
        labels={name: name.upper() for name in ("brickface", "sky", "foliage", "cement", "window", "path", "grass")},
    ),
    n_rows=2310,
)
_PIMA = Flat(
    "pima-diabetes",
    continuous(["pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin", "bmi", "pedigree", "age"]),
    files={"all": "pima-indians-diabetes.csv"},
    label_type=int,
    openml=OpenML(37, labels={"tested_negative": "0", "tested_positive": "1"}),
    n_rows=768,
)
_THYROID = Flat(
    "new-thyroid",
    continuous(["t3_resin", "thyroxin", "triiodothyronine", "thyroid_stimulating", "tsh_difference"]),
    files={"all": "new-thyroid.csv"},
    label_type=int,
    openml=OpenML(40682),
    n_rows=215,
)
_PHILIPS = Flat(
    "cellwise-philips",
    continuous([f"X{i}" for i in range(1, 10)]),
    files={"all": "data_philips.csv"},
    target=None,
    skip=1,
)
_GLASS = Flat(
    "cellwise-glass",
    continuous([f"V{i}" for i in range(1, 751)]),
    files={"all": "data_glass.csv.gz"},
    target=None,
    skip=1,
)


def load_sonar() -> Dataset:
    """Sonar echoes, 208 rows of 60 frequency bands, target 'M' (mine) or 'R' (rock)."""
    return load_flat(_SONAR)


def load_ionosphere(*, keep_constant: bool = False) -> Dataset:
    """Radar returns, 351 rows, 33 columns (34 with the constant one), target 'g' or 'b'."""
    found = load_flat(_IONOSPHERE)
    if keep_constant:
        return found
    kinds = {name: kind for name, kind in found.kinds.items() if name != "pulse_1_imaginary"}
    return replace(found, data=np.delete(np.asarray(found.data), 1, axis=1), kinds=kinds)


def load_image_segmentation(subset: str = "all") -> Dataset:
    """Outdoor image patches, 19 columns, 7 classes; subset 'all' (2,310 rows), 'train' (210) or 'test' (2,100)."""
    return load_flat(_SEGMENTATION, subset)


def load_pima_diabetes(*, zeros: str = "keep") -> Dataset:
    """Diabetes of Pima women, 768 rows, 8 columns, target 0 or 1.

    `zeros='missing'` turns the zeros of glucose, blood pressure, skin thickness, insulin and bmi into missing cells,
    which is what they are.
    """
    check_choice("zeros", zeros, ("keep", "missing"))
    found = load_flat(_PIMA)
    if zeros == "keep":
        return found
    data = np.array(found.data)
    data[:, 1:6][data[:, 1:6] == 0] = np.nan
    return replace(found, data=data)


def load_new_thyroid() -> Dataset:
    """Thyroid laboratory values, 215 rows, 5 columns, target 1 (normal), 2 (hyper) or 3 (hypo)."""
    return load_flat(_THYROID)


def load_cellwise_philips() -> Dataset:
    """Measurements on diaphragm parts in time order, 677 rows, 9 columns, no target."""
    return load_flat(_PHILIPS)


def load_cellwise_glass() -> Dataset:
    """Spectra of archaeological glass, 180 rows, 750 wavelengths (8 of them constant), no target."""
    return load_flat(_GLASS)


def load_g241c() -> Dataset:
    """Two Gaussians in 241 dimensions, 1,500 rows, target -1 or 1, with the benchmark's splits.

    `splits['labelled_10']` and `splits['labelled_100']` are (12, 10) and (12, 100) row numbers from 0.
    """
    return _load_ssl("g241c", 5)


def load_g241n() -> Dataset:
    """Four Gaussians in 241 dimensions with misleading clusters, otherwise as `load_g241c`."""
    return _load_ssl("g241n", 7)


def _load_ssl(name: str, number: int) -> Dataset:
    from scipy.io import loadmat

    folder = require_folder(name)
    content = loadmat(folder / f"SSL,set={number},data.mat")
    splits = {
        f"labelled_{n}": loadmat(folder / f"SSL,set={number},splits,labeled={n}.mat")["idxLabs"].astype(np.int64) - 1
        for n in (10, 100)
    }
    data = np.ascontiguousarray(content["X"], dtype=np.float64)
    kinds = continuous([f"x{i}" for i in range(data.shape[1])])
    return Dataset(name, data, content["y"].ravel().astype(np.int64), kinds, describe(name), splits=splits)


def load_ida_banana(subset: str = "train", *, realisation: int = 1) -> Dataset:
    """Banana-shaped classes in the plane; 'train' (400 rows) or 'test' (4,900); realisation 1."""
    return _load_ida("banana", 2, subset, realisation, (1,))


def load_ida_twonorm(subset: str = "train", *, realisation: int = 1) -> Dataset:
    """Two Gaussians in 20 dimensions; 'train' (400 rows) or 'test' (7,000); realisation 1."""
    return _load_ida("twonorm", 20, subset, realisation, (1,))


def load_ida_ringnorm(subset: str = "train", *, realisation: int = 1) -> Dataset:
    """A narrow Gaussian inside a wide one; 'train' (400 rows) or 'test' (7,000); realisations 1 to 3."""
    return _load_ida("ringnorm", 20, subset, realisation, (1, 2, 3))


def load_ida_waveform(subset: str = "train", *, realisation: int = 1) -> Dataset:
    """Waveforms, one against two; 'train' (400 rows) or 'test' (4,600), 21 columns; realisation 1."""
    return _load_ida("waveform", 21, subset, realisation, (1,))


def load_ida_heart(subset: str = "train", *, realisation: int = 1) -> Dataset:
    """Heart disease, standardised; 'train' (170 rows) or 'test' (100), 13 columns; realisations 1 to 3."""
    return _load_ida("heart", 13, subset, realisation, (1, 2, 3))


def _load_ida(stem: str, n_columns: int, subset: str, realisation: int, available: tuple[int, ...]) -> Dataset:
    check_choice("subset", subset, ("train", "test"))
    if realisation not in available:
        raise ParameterError(f"realisation of ida-{stem} must be one of {available}; got {realisation!r}.")
    folder = require_folder(f"ida-{stem}")
    data_file = folder / f"{stem}_{subset}_data_{realisation}.asc"
    data = read_numbers(data_file if data_file.exists() else data_file.with_suffix(".asc.gz"), n_columns)
    labels = read_numbers(folder / f"{stem}_{subset}_labels_{realisation}.asc", 1).ravel().astype(np.int64)
    kinds = continuous([f"x{i}" for i in range(n_columns)])
    return Dataset(f"ida-{stem}", data, labels, kinds, describe(f"ida-{stem}"))
