"""Everything in a page that a browser would run, follow or load."""

from __future__ import annotations

from html.parser import HTMLParser

RUNS = {
    "script",
    "iframe",
    "object",
    "embed",
    "applet",
    "base",
    "link",
    "frame",
    "portal",
    "foreignobject",
    "animate",
    "set",
    "use",
}
LOADS = {"src", "href", "xlink:href", "action", "formaction", "data", "poster", "background", "srcset", "ping"}


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.scripts: list[str] = []
        self.in_script = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.in_script = tag == "script"
        if tag in RUNS - {"script"}:
            self.found.append(f"<{tag}>")
        if tag == "script":
            self.scripts.append("")
        if tag == "meta" and ("http-equiv", "refresh") in attributes:
            self.found.append("<meta refresh>")
        for name, value in attributes:
            target = (value or "").strip()
            if name.startswith("on") or name == "srcdoc":
                self.found.append(f"{tag} {name}={value}")
            if name in LOADS and not target.startswith(("#", "data:image/png;base64,")):
                self.found.append(f"{tag} {name}={value}")
            if name == "style" and any(word in target.lower() for word in ("url(", "expression", "@import")):
                self.found.append(f"{tag} style={value}")

    def handle_endtag(self, tag: str) -> None:
        self.in_script = self.in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self.in_script:
            self.scripts[-1] += data


def executable(page: str, own_script: str | None = None) -> list[str]:
    """What could run in the page, apart from one script that is our own."""
    finder = _Finder()
    finder.feed(page)
    finder.close()
    allowed = [] if own_script is None else [own_script]
    return finder.found + (["<script>"] if finder.scripts != allowed else [])
