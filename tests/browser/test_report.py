"""The report in a real browser: opened from disk, without a network, with and without scripts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goldseam.report import write_report
from tests.report import samples

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "narrow": (400, "light")}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from tests.report.test_hostile import HOSTILE, restoration_of

    folder = tmp_path_factory.mktemp("reports")
    names = [text[:2000] + str(i) for i, text in enumerate(HOSTILE)]
    causes = ["corrupt", "missing", "noise", "unseen", "refused"]
    made = {
        "mixed": samples.mixed(300),
        "images": samples.images(),
        "series": samples.series(),
        "hostile": restoration_of(names, HOSTILE, [causes[i % 5] for i in range(len(HOSTILE))]),
    }
    for name, restoration in made.items():
        write_report(restoration, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


class Visit:
    """A page with everything it complained about or asked for."""

    def __init__(self, browser: Any, path: Path, **settings: Any) -> None:
        self.context = browser.new_context(offline=True, **settings)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def column(self, at: int) -> list[str]:
        return self.page.eval_on_selector_all(
            "#change-table tbody tr:not([hidden])", f"rows => rows.map(row => row.cells[{at}].textContent.trim())"
        )


@pytest.mark.parametrize("name", ["mixed", "images", "series", "hostile"])
@pytest.mark.parametrize("look", LOOKS)
def test_the_page_opens_without_complaint_or_request(
    browser: Any, reports: dict[str, Path], name: str, look: str
) -> None:
    width, scheme = LOOKS[look]
    with Visit(browser, reports[name], viewport={"width": width, "height": 900}, color_scheme=scheme) as visit:
        visit.page.screenshot(full_page=True)
        assert visit.complaints == []
        assert [url for url in visit.requests if not url.startswith("data:image/png")] == [reports[name].as_uri()]
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, background[4:-1].split(","))) < 3 * 80) == (scheme == "dark")


def test_the_change_table_sorts(browser: Any, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["mixed"]) as visit:
        before = visit.column(0)
        header = visit.page.locator("#change-table thead th", has_text="row").first
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == "ascending"
        assert [int(text) for text in visit.column(0)] == sorted(int(text) for text in before)
        header.locator("button").press("Enter")
        assert header.get_attribute("aria-sort") == "descending"
        assert [int(text) for text in visit.column(0)] == sorted((int(text) for text in before), reverse=True)
        visit.page.locator("#change-table thead button", has_text="column").click()
        assert visit.column(1) == sorted(visit.column(1))
        assert visit.page.locator("#change-table [aria-sort]").count() == 1


def test_the_change_table_filters(browser: Any, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["mixed"]) as visit:
        n = len(visit.column(0))
        visit.page.fill("#filter", "atlantis")
        assert 0 < len(visit.column(0)) < n
        assert set(visit.column(3)) == {"Atlantis"}
        visit.page.fill("#filter", "")
        visit.page.select_option("#cause", "missing")
        shown = visit.column(2)
        assert shown
        assert all("missing" in text for text in shown)
        assert visit.page.inner_text("#shown") == f"{len(shown)} of {n} shown"
        visit.page.fill("#filter", "no such text")
        assert visit.column(0) == []


def test_the_page_works_without_scripts(browser: Any, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["mixed"], java_script_enabled=False) as visit:
        assert visit.page.locator("h1").is_visible()
        assert visit.page.locator("form.filter").is_hidden()
        assert visit.page.locator("#change-table tbody tr").count() > 20
        closed = visit.page.locator("details.row:not([open])").first
        closed.locator("summary").click()
        mapped = visit.page.locator(".cell-map .c-corrupt").first
        assert mapped.is_visible()
        visit.page.uncheck("#show-corrupt")
        assert not mapped.is_visible()


def test_the_page_works_by_keyboard(browser: Any, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["mixed"]) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.textContent") == "Skip to the report"
        reached = []
        for _ in range(80):
            visit.page.keyboard.press("Tab")
            reached.append(visit.page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        assert {"show-corrupt", "SUMMARY", "filter", "cause", "BUTTON"} <= set(reached)


def test_the_page_speaks_to_screen_readers(browser: Any, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["images"]) as visit:
        heard = visit.page.locator("body").aria_snapshot()
        for said in ("navigation \"Contents\"", "heading \"Promised and measured\" [level=2]", "Cell map: 60 rows across",
                     "before and after: 64 cells touched", "checkbox \"corrupt\"", "searchbox \"Filter\""):  # fmt: skip
            assert said in heard, said


def test_the_page_prints_everything(browser: Any, reports: dict[str, Path], tmp_path: Path) -> None:
    with Visit(browser, reports["mixed"]) as visit:
        visit.page.pdf(path=tmp_path / "report.pdf")
        assert (tmp_path / "report.pdf").stat().st_size > 30_000
        visit.page.emulate_media(media="print")
        assert visit.page.locator("nav").is_hidden()
        visit.page.set_viewport_size({"width": 720, "height": 1000})  # A4 with margins: nothing is cut off or shrunk
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 720
        assert visit.complaints == []


def test_a_script_that_slipped_in_would_not_run(browser: Any, reports: dict[str, Path], tmp_path: Path) -> None:
    page = (
        reports["mixed"]
        .read_text()
        .replace(
            "</h1>", "</h1><script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">"
        )
    )
    (tmp_path / "broken.html").write_text(page)
    with Visit(browser, tmp_path / "broken.html") as visit:
        assert "broken" not in visit.page.title()
        assert len([text for text in visit.complaints if "Content Security Policy" in text]) >= 2
