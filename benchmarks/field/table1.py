"""Table 1: accuracy under noise (F11.4)."""

from __future__ import annotations

from benchmarks.field.classification import table

TAUS = (0.1, 0.2, 0.3, 0.4, 0.5)
# reference implementation (paper), F11.4: field, hard output, linear SVM
REFERENCE = {
    "adult": (".842 (.841)", ".837 (.832)", ".816 (.819)", ".802 (.805)", ".781 (.792)"),
    "credit-approval": (".792 (.789)", ".744 (.738)", ".721 (.686)", ".668 (.666)", ".642 (.634)"),
    "australian": (".793 (.797)", ".769 (.766)", ".743 (.736)", ".732 (.708)", ".710 (.666)"),
    "german": (".755 (.752)", ".729 (.741)", ".721 (.721)", ".716 (.727)", ".703 (.710)"),
}


def main(quick: bool) -> None:
    settings = [(tau, 0.0) for tau in TAUS]
    table(quick, settings, "Table 1: accuracy under noise", "field-table1", REFERENCE, "no restoration")
