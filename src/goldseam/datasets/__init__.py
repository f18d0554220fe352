"""Loaders of public data sets and generators of synthetic ones.

Every loader returns a `Dataset`. Files are looked for in the folder named by `GOLDSEAM_DATA`, else in the `data` folder
of a `shared` directory beside the repository; sets that OpenML has come from there when no file is found; a set that is
nowhere raises `DatasetNotFoundError` with the way to get it. `load_wdbc`, `load_digits` and `load_wine` need no files.

>>> from goldseam.datasets import load_wine
>>> wine = load_wine()
>>> wine.data.shape, wine.feature_names[0]
((178, 13), 'alcohol')
"""

from goldseam.datasets.bundled import load_digits, load_wdbc, load_wine
from goldseam.datasets.dataset import Dataset, DirtyDataset
from goldseam.datasets.dirty import load_raha_beers, load_raha_flights, load_raha_hospital
from goldseam.datasets.footstep import FootstepStudy, footstep_features, make_footsteps, split_footsteps
from goldseam.datasets.images import load_usps
from goldseam.datasets.mixed_net import MixedField, MixedNetStudy, make_mixed_net
from goldseam.datasets.norms import make_ringnorm, make_twonorm, make_waveform
from goldseam.datasets.numeric import (
    load_cellwise_glass,
    load_cellwise_philips,
    load_g241c,
    load_g241n,
    load_ida_banana,
    load_ida_heart,
    load_ida_ringnorm,
    load_ida_twonorm,
    load_ida_waveform,
    load_image_segmentation,
    load_ionosphere,
    load_new_thyroid,
    load_pima_diabetes,
    load_sonar,
)
from goldseam.datasets.ring import RingStudy, make_ring
from goldseam.datasets.sensors import load_intel_lab, load_skab, load_wsn_singlehop
from goldseam.datasets.tabular import (
    load_adult,
    load_australian,
    load_breast_cancer_ljubljana,
    load_credit_approval,
    load_german,
    load_splice,
    load_topgear,
)
from goldseam.datasets.two_gaussians import make_two_gaussians

__all__ = [
    "Dataset",
    "DirtyDataset",
    "FootstepStudy",
    "MixedField",
    "MixedNetStudy",
    "RingStudy",
    "footstep_features",
    "load_adult",
    "load_australian",
    "load_breast_cancer_ljubljana",
    "load_cellwise_glass",
    "load_cellwise_philips",
    "load_credit_approval",
    "load_digits",
    "load_g241c",
    "load_g241n",
    "load_german",
    "load_ida_banana",
    "load_ida_heart",
    "load_ida_ringnorm",
    "load_ida_twonorm",
    "load_ida_waveform",
    "load_image_segmentation",
    "load_intel_lab",
    "load_ionosphere",
    "load_new_thyroid",
    "load_pima_diabetes",
    "load_raha_beers",
    "load_raha_flights",
    "load_raha_hospital",
    "load_skab",
    "load_sonar",
    "load_splice",
    "load_topgear",
    "load_usps",
    "load_wdbc",
    "load_wine",
    "load_wsn_singlehop",
    "make_footsteps",
    "make_mixed_net",
    "make_ring",
    "make_ringnorm",
    "make_two_gaussians",
    "make_twonorm",
    "make_waveform",
    "split_footsteps",
]
