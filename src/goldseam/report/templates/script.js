(() => {
  "use strict";
  const value = (row, at) => {
    const cell = row.cells[at];
    const exact = cell.dataset.v;
    return exact === undefined ? cell.textContent.trim() : Number(exact);
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));

  const sortBy = (table, header, at) => {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const keyed = Array.from(body.rows, (row) => [value(row, at), row]);
    keyed.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
    body.append(...keyed.map((pair) => pair[1]));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((header, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sortBy(table, header, at));
      header.append(button);
    });
  }

  const form = document.querySelector("form.filter");
  const table = document.getElementById("change-table");
  if (form && table) {
    const rows = Array.from(table.tBodies[0].rows);
    const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const wanted = document.getElementById("filter");
    const cause = document.getElementById("cause");
    const matches = document.getElementById("shown");
    const apply = () => {
      const parts = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = (!cause.value || row.dataset.cause === cause.value) && parts.every((part) => words.get(row).includes(part));
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      matches.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown`;
    };
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    wanted.addEventListener("input", apply);
    cause.addEventListener("change", apply);
    apply();
  }

  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    for (const part of closed) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });
})();
