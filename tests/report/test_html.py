"""The report as a page: what it says, its size, and what it needs."""

from __future__ import annotations

import builtins
import re
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldseam.errors import InputError, MissingDependencyError
from goldseam.report import audit_html, render_html, render_markdown, short_html, write_report
from goldseam.seam import CAUSES, Seam
from tests.report import samples
from tests.report.inert import executable

SCRIPT = files("goldseam.report").joinpath("templates", "script.js").read_text(encoding="utf-8")


def page(restoration: Any) -> str:
    return render_html(restoration.summary(), restoration.seam)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a library impossible to import."""

    def block(*names: str) -> None:
        original = builtins.__import__

        def guarded(name: str, *args: Any, **kwargs: Any) -> Any:
            if name.split(".")[0] in names:
                raise ImportError(f"No module named {name!r}")
            return original(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", guarded)

    return block


def test_the_page_says_what_happened() -> None:
    html = page(samples.mixed(200))
    clean = re.sub(r"<[^>]+>", " ", html)
    for said in ("35 cells mended in 33 of 200 rows", "4.4\u202f% of 800 cells", "row alarm rate", "not kept",
                 "single cells redrawn", "closest reference rows 12, 85, 301", "Atlantis",
                 "sha256:ab12", "6 of 400 rows were distrusted"):  # fmt: skip
        assert said in clean, said
    for part in ("promises", "map", "rows", "columns", "changes", "audit", "reference", "how"):
        assert f'id="{part}"' in html
        assert f'href="#{part}"' in html


def test_a_refused_cell_stays() -> None:
    restoration = samples.mixed()
    seam = Seam.of(row=[4], column=["age"], kind=["integer"], cause=["refused"], observed=["910"], restored=["910"])
    html = render_html(restoration.summary(), seam)
    assert '<span class="kept"><bdi>910</bdi></span> <i>stays</i>' in html
    assert 'class="old"' not in html
    assert "910 stays" in render_markdown(restoration.summary(), seam)


def test_pictures_and_timelines_appear_when_declared() -> None:
    images, series, mixed = page(samples.images()), page(samples.series()), page(samples.mixed())
    assert images.count('class="pair"') == 12
    assert 'id="time"' not in images
    assert series.count('class="timeline"') == 2
    assert 'id="images"' not in series
    assert 'id="time"' not in mixed
    assert 'id="images"' not in mixed


@pytest.mark.parametrize("make", [samples.mixed, samples.images, samples.series, lambda: samples.mixed(facts={})])
def test_pictures_are_well_formed_and_named(make: Any) -> None:
    html = page(make())
    pictures = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert pictures
    for picture in pictures:
        root = ET.fromstring(picture)
        assert root.get("aria-hidden") == "true" or (
            root.get("role") == "img" and root[0].tag.endswith("title") and root[0].text
        )


def test_every_link_inside_has_a_target() -> None:
    html = page(samples.images())
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)


@pytest.mark.parametrize("make", [samples.mixed, samples.images, samples.series])
def test_only_our_own_script_can_run(make: Any) -> None:
    html = page(make())
    assert executable(html, SCRIPT) == []
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    assert " style=" not in html


@pytest.mark.parametrize(
    "bad",
    ["<script>x</script>", "<b onclick=x>", "<a href='javascript:x'>", "<img src=x>", "<iframe>", "<svg><use href=x>"],
)
def test_the_search_for_what_runs_finds_it(bad: str) -> None:
    assert executable(page(samples.mixed()).replace("<bdi>Atlantis", f"<bdi>{bad}", 1), SCRIPT)


def test_no_audit_is_said_not_hidden() -> None:
    html = page(samples.mixed(facts={}))
    assert html.count("No audit was made, so it is not known what this run misses.") == 2
    assert "No promise was measured in this run." in html


def test_facts_may_be_sparse() -> None:
    facts = {
        "promises": [{"name": "odd"}, {"name": "half", "nominal": 0.1}],
        "audit": {"damage": [{"kind": "x"}], "sources": [{"name": "s", "gain": "n/a"}], "rows": {"fit": "all"}},
        "reference": {"trust": {"counts": [1, 2]}},
        "noise": {"age": None},
        "how": {"versions": None},
    }
    html = page(samples.mixed(facts=facts))
    assert "not measured" in html
    assert "went unseen altogether." in html
    assert "Seen least" not in html


def test_noise_time_and_sources_are_shown() -> None:
    restoration = samples.mixed()
    html, text = page(restoration), render_markdown(restoration.summary(), restoration.seam)
    for level in ("0.2 sd, estimated", "too little to tell", "3.1\u202f% flipped, given"):
        assert f"<td>{level}</td>" in html
    assert html.count('scope="col">noise</th>') == 1
    assert "noise: 0.2 sd, estimated" in html
    assert "2026-01-02T03:04:05+00:00" in html
    assert '<bdi>tree</bdi></th><td>yes</td><td class="n">0.12</td><td class="n">1.25</td>' in html
    assert "<bdi>field</bdi></th><td>no</td>" in html
    assert "| age | integer | 0\\.2 sd, estimated |" in text
    assert "| tree | yes | 0.12 | 1.25 |" in text
    assert "created: 2026" in text
    assert 'scope="col">noise</th>' not in page(samples.mixed(facts={}))


def test_an_audit_that_found_everything_says_so() -> None:
    restoration = samples.mixed(facts={"audit": {"damage": [{"kind": "scale", "found": 1.0}]}})
    for text in (page(restoration), render_markdown(restoration.summary(), restoration.seam)):
        assert "Damaged rows of every kind that the audit tried were found." in text
        assert "een least" not in text


def test_without_blind_spots_the_page_says_what_is_seen_least() -> None:
    audit = {"damage": [{"kind": "noise", "size": "a little", "found": 0.5}, {"kind": "scale", "found": 0.9}]}
    restoration = samples.mixed(facts={"audit": audit})
    assert "Seen least:</p><ul><li><bdi>noise: a little (found 50\u202f%)</bdi></li>" in page(restoration)
    assert "seen least: noise&#58; a little" in render_markdown(restoration.summary(), restoration.seam)


def test_a_huge_wide_table_stays_below_two_megabytes(rng: np.random.Generator) -> None:
    names = [f"{'very long column name ' * 50}{i}" for i in range(3000)]
    n = 30_000
    seam = Seam.of(
        row=np.sort(rng.integers(0, 10**9, n)),
        column=[names[i] for i in rng.integers(0, len(names), n)],
        kind=["categorical"] * n,
        cause=rng.choice(CAUSES, n).tolist(),
        observed=["<&'\"" * 1000] * n,
        restored=["\u202e" * 5000] * n,
        donors=[[10**15] * 50] * n,
    )
    summary = samples.mixed().summary()
    column = summary["columns"][2] | {"levels": ["<&'\"" * 1000] * 20}
    column["before"] = column["after"] = column["before"] | {"counts": list(range(1, 21))}
    column["by_cause"] = dict.fromkeys(CAUSES, 10**9)
    summary |= {
        "columns": [column | {"name": name, "reference": None} for name in names],
        "table": {"rows": 10**9, "columns": 3000, "first_row": 0},
    }
    summary["promises"] = summary["promises"] * 500
    summary["audit"] = summary["audit"] | {
        "cannot_see": ["x" * 10**6] * 500,
        "damage": summary["audit"]["damage"] * 500,
    }
    summary["how"] = {"call": "x" * 10**7, "versions": {"y" * 10**6: "z" * 10**6}}
    assert len(render_html(summary, seam).encode()) < 2_000_000


def test_without_matplotlib_the_page_is_the_same(without: Any) -> None:
    expected = page(samples.images())
    without("matplotlib")
    assert page(samples.images()) == expected


def test_without_jinja2_the_error_names_the_extra_and_markdown_still_works(without: Any, tmp_path: Path) -> None:
    restoration = samples.mixed()
    without("jinja2")
    with pytest.raises(MissingDependencyError, match=r"goldseam\[report\]"):
        write_report(restoration, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
    write_report(restoration, tmp_path / "report.md")
    assert "<table" in short_html(restoration)


def test_suffixes(tmp_path: Path) -> None:
    restoration = samples.mixed()
    with pytest.raises(InputError, match=r"not to '\.pdf' \(file 'report\.pdf'\)"):
        write_report(restoration, tmp_path / "report.pdf")
    with pytest.raises(InputError, match="needs its seam"):
        write_report(restoration.summary(), tmp_path / "report.html")
    for name in ("a.html", "b.md", "c.json"):
        write_report(restoration.summary(), tmp_path / name, seam=restoration.seam)
        write_report(restoration, tmp_path / ("again-" + name))
        assert (tmp_path / name).read_text() == (tmp_path / ("again-" + name)).read_text()


def test_the_same_restoration_gives_the_same_page() -> None:
    assert page(samples.series()) == page(samples.series())


def test_short_forms_for_notebooks() -> None:
    html = short_html(samples.mixed(200))
    assert "35 cells mended in 33 of 200 rows" in html
    assert "and 27 more" in html
    assert executable(html) == []
    audit = audit_html(samples.FACTS["audit"])
    assert "swapped columns" in audit
    assert "found 14 %" in audit
    assert executable(audit) == []
