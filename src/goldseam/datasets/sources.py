"""Where each set comes from, under which licence, and what to know before using it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["describe"]

_UCI = "UCI Machine Learning Repository, CC BY 4.0"
_IDA = (
    "Gunnar Rätsch's IDA benchmark; G. Rätsch, T. Onoda, K.-R. Müller, Machine Learning 42(3), 2001. "
    "No licence stated for the original files"
)
_SSL = "O. Chapelle, B. Schölkopf, A. Zien, Semi-Supervised Learning, MIT Press 2006, ch. 21. No licence stated"
_RAHA = "Apache-2.0 (raha); M. Mahdavi et al., Raha, SIGMOD 2019"


@dataclass(frozen=True)
class Source:
    """One set in words."""

    title: str
    licence: str
    notes: str


_SOURCES = {
    "adult": Source(
        "UCI Adult (Census Income), original train/test split",
        f"{_UCI}; B. Becker, R. Kohavi, 1996",
        "Missing cells in workclass, occupation, native_country. education_num recodes education. capital_gain is "
        "mostly 0, with a spike at 99999. Labels of the test file end in a full stop there; here both parts have the same.",
    ),
    "credit-approval": Source(
        "UCI Credit Approval (crx)",
        f"{_UCI}; J. R. Quinlan, 1987",
        "67 missing cells in 37 rows. Leading zeros of A11 and A14 are dropped: both are integers.",
    ),
    "australian": Source(
        "Statlog Australian credit, the integer-recoded crx",
        f"{_UCI}; Statlog project, 1993",
        "Gaps were filled with modes and means upstream. The same people as credit-approval. "
        "Categories are numerals as text.",
    ),
    "german": Source(
        "Statlog German credit, symbolic version",
        f"{_UCI}; H. Hofmann, 1994",
        "Class 1 is good, 2 is bad. Four of the seven numeric columns take at most four values.",
    ),
    "usps": Source(
        "USPS handwritten digits, 16 x 16 grey",
        "No licence stated; Y. LeCun et al., NIPS 1989; distributed with Hastie, Tibshirani, Friedman, The Elements of "
        "Statistical Learning (R package ElemStatLearn, GPL >= 2)",
        "Row-major images, three decimals in [-1, 1] in the file, given here in [0, 1] with 0 as background.",
    ),
    "sonar": Source(
        "UCI Connectionist Bench (Sonar, Mines vs Rocks)",
        f"{_UCI}; R. P. Gorman, T. J. Sejnowski, 1988",
        "Neighbouring columns are frequency bands in order and strongly correlated.",
    ),
    "ionosphere": Source(
        "UCI Ionosphere",
        f"{_UCI}; V. Sigillito et al., 1989",
        "Column pulse_1_imaginary is constant 0 and left out unless asked for; pulse_1_real is binary.",
    ),
    "g241c": Source(
        "Chapelle SSL benchmark, set 5",
        _SSL,
        "Artificial: two unit-variance Gaussians 2.5 apart, then standardised.",
    ),
    "g241n": Source(
        "Chapelle SSL benchmark, set 7 (also called g241d)",
        _SSL,
        "Artificial: four Gaussians that form two misleading clusters, then standardised.",
    ),
    "ida-banana": Source("IDA banana", _IDA, "Standardised upstream. Realisation 1 of 100."),
    "ida-twonorm": Source("IDA twonorm", _IDA, "Standardised upstream. Realisation 1. See also make_twonorm."),
    "ida-ringnorm": Source("IDA ringnorm", _IDA, "Standardised upstream. Realisations 1-3. See also make_ringnorm."),
    "ida-waveform": Source(
        "IDA waveform, two classes",
        _IDA,
        "Standardised upstream. Realisation 1. +1 is one waveform class, -1 the other two. See also make_waveform.",
    ),
    "ida-heart": Source(
        "IDA heart (Statlog heart)",
        _IDA,
        "Standardised upstream, categorical codes too: eight of the thirteen columns are codes in truth. "
        "Realisations 1-3.",
    ),
    "image-segmentation": Source(
        "UCI Image Segmentation",
        f"{_UCI}; C. Brodley, 1990",
        "region_pixel_count is constant 9. Several columns are linear combinations of others.",
    ),
    "splice": Source(
        "UCI Splice-junction gene sequences",
        f"{_UCI}; G. Towell, M. Noordewier, J. Shavlik, 1991",
        "The ambiguous letters N, D, R, S (60 cells) can be read as missing.",
    ),
    "pima-diabetes": Source(
        "Pima Indians diabetes",
        "Originally UCI (NIDDK), since withdrawn there; CC0 in common redistributions; J. W. Smith et al., 1988",
        "Zeros of glucose, blood_pressure, skin_thickness, insulin and bmi are missing values in disguise.",
    ),
    "new-thyroid": Source(
        "UCI new-thyroid", f"{_UCI}; R. Quinlan, D. Coomans", "Five laboratory values, three classes."
    ),
    "breast-cancer-ljubljana": Source(
        "UCI Breast Cancer, Ljubljana",
        f"{_UCI}; M. Zwitter, M. Soklic, 1988",
        "All columns categorical, four of them ordered. 9 missing cells.",
    ),
    "skab": Source(
        "SKAB v0.9 (Skoltech Anomaly Benchmark): water-circulation rig, 8 sensors at 1 Hz",
        "GPL-3.0; I. Katser, V. Kozitsin, SKAB, 2020, doi:10.34740/KAGGLE/DSV/1693952",
        "The labels mark a process anomaly (a valve is closed and reopened), not a broken sensor.",
    ),
    "wsn-singlehop": Source(
        "Labelled single-hop wireless sensor network, 4 motes",
        "Database ODC-By 1.0, contents CC BY 4.0; S. Suthaharan et al., ISSNIP 2010",
        "Readings every 5 s. Label 1 is an event made on purpose at one mote of a pair while its "
        "neighbour stays clean.",
    ),
    "intel-lab-30min": Source(
        "Intel Berkeley Research Lab sensors, 50 motes every 30 minutes",
        "No licence stated; S. Madden et al., Intel Lab Data, 2004",
        "Rounded to three significant digits. No missing cells, no labelled faults. "
        "The test days follow the training days.",
    ),
    "raha-hospital": Source(
        "Dirty/clean pair hospital",
        f"{_RAHA}; US hospital quality data",
        "Typos: characters replaced by x. 'empty' is a literal value. Strong functional dependencies.",
    ),
    "raha-flights": Source(
        "Dirty/clean pair flights",
        f"{_RAHA}; X. Li et al., VLDB 2013",
        "Times such as '7:10 a.m.': missing, conflicting and re-formatted across sources. Real errors.",
    ),
    "raha-beers": Source(
        "Dirty/clean pair beers",
        f"{_RAHA}; craft-beers data by J. N. Hould",
        "Unit text in ounces, % in abv, N/A for missing ibu, the state appended to the city.",
    ),
    "cellwise-philips": Source(
        "cellWise philips: 9 measurements on TV diaphragm parts",
        "GPL >= 2 (R package cellWise); P. Rousseeuw, K. Van Driessen, 1999",
        "Rows in time order. The literature reports outlying rows 491-565 and a deviating start. No labels.",
    ),
    "cellwise-glass": Source(
        "cellWise glass: EPXMA spectra of archaeological glass",
        "GPL >= 2 (R package cellWise); P. Lemberge et al., J. Chemometrics 2000",
        "Wavelengths in order; 8 columns are constant and a few nearly so. No labels.",
    ),
    "topgear": Source(
        "Top Gear cars (robustHD)",
        "GPL >= 2 (R package robustHD, A. Alfons); data from the BBC Top Gear site",
        "Real cell errors: Weight 210 of the Peugeot 107, MPG of plug-in cars. 120 missing cells. "
        "Price, Displacement, BHP, Torque and TopSpeed want logarithms.",
    ),
    "wdbc": Source(
        "Breast Cancer Wisconsin (diagnostic)", f"{_UCI}; ships with scikit-learn", "Class 0 malignant, 1 benign."
    ),
    "digits": Source("Handwritten digits, 8 x 8", f"{_UCI}; ships with scikit-learn", "Grey values 0-16: a lattice."),
    "wine": Source("Wine recognition", f"{_UCI}; ships with scikit-learn", "Three cultivars."),
}


def describe(name: str) -> str:
    """Title, source, licence and notes of a set.

    >>> print(describe("new-thyroid"))
    UCI new-thyroid. Five laboratory values, three classes.
    Source and licence: UCI Machine Learning Repository, CC BY 4.0; R. Quinlan, D. Coomans.
    """
    source = _SOURCES[name]
    return f"{source.title}. {source.notes}\nSource and licence: {source.licence}."
