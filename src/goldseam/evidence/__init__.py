"""What a row's cells deserve to be believed, from all sources jointly: one posterior, calibrated, and what to do about it.

| file | idea |
|---|---|
| `prior` | what damage looks like before a row is seen (E-6) |
| `pool` | experts as one density |
| `rows` | rows as the rounds need them, and what experts make of them |
| `posterior` | rounds of beliefs and the search (E3, E-7, E-14) |
| `calibration` | conformal ranks, thresholds |
| `doubt` | calibration rows that may be damaged themselves |
| `rehearsal` | damage for practice |
| `repair`, `gains` | how far to move a cell, when to refuse (E5, E8.7) |
| `intervals` | how far the interval of a changed number reaches (E-8 to E-10) |
| `mixture` | how a table is damaged, and how bold its repairs are (E-15) |
| `interface` | how further sources take part: experts and witnesses |
| `practice` | what rehearsal teaches, and what a method is worth in it |
| `selection` | which experts pay for their cost |
| `model`, `fitting` | all together |
"""

from goldseam.conditional.source import CellPrediction, CellSource
from goldseam.evidence.fitting import fit_evidence, learn_evidence
from goldseam.evidence.interface import UnitExpert, Witness
from goldseam.evidence.model import Evidence, Findings, Repairs
from goldseam.evidence.practice import Practice
from goldseam.evidence.prior import Prior

__all__ = [
    "CellPrediction",
    "CellSource",
    "Evidence",
    "Findings",
    "Practice",
    "Prior",
    "Repairs",
    "UnitExpert",
    "Witness",
    "fit_evidence",
    "learn_evidence",
]
