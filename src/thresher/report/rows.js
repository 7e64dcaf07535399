// The list of rows: sorted by a click on a column, filtered, saved as it is shown.
(() => {
  const table = byId("worst");
  if (!table) return;
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map((head) => head.textContent.trim());
  const rows = [...body.rows];
  const words = rows.map((row) => row.textContent.toLowerCase());
  const find = byId("find");
  const picks = ["suggestion", "label", "owner"].map(pick).filter(Boolean);
  const decision = byId("pick-decision");

  heads.forEach((head, column) => {
    const button = make("button", { type: "button" }, ...head.childNodes);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      order(column, head.classList.contains("number"), up ? 1 : -1);
    });
    head.append(button);
  });

  function order(column, numeric, sign) {
    const keys = new Map(rows.map((row) => [row, content(row.cells[column])]));
    body.append(...[...rows].sort((a, b) => {
      const [p, q] = [keys.get(a), keys.get(b)];
      if (p === "" || q === "") return (p === "") - (q === "");
      return sign * (numeric ? p - q : p.localeCompare(q, "en", { numeric: true }));
    }));
  }

  function pick(name) {
    const place = names.indexOf(name);
    const select = byId("pick-" + name);
    if (place < 0) { select.parentElement.remove(); return null; }
    const found = [...new Set(rows.map((row) => content(row.cells[place])))];
    found.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    found.forEach((text) => select.add(new Option(text, text)));
    select.addEventListener("change", filter);
    return { place, select };
  }

  function fits(row) {
    const open = ["", "skip", undefined].includes(row.dataset.decision);
    return (decision.value === "all" || (decision.value === "open") === open) &&
      picks.every(({ place, select }) => select.selectedIndex === 0 || content(row.cells[place]) === select.value);
  }

  function filter() {
    const wanted = find.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !(words[i].includes(wanted) && fits(row));
      shown += !row.hidden;
    });
    byId("count").textContent = `Showing ${shown.toLocaleString("en")} of ${countOf(rows.length, "row")}`;
    document.dispatchEvent(new Event("filtered"));
  }

  byId("csv").addEventListener("click", () => {
    const written = (cell) => cell.dataset.v === undefined ? harmless(content(cell)) : content(cell);
    const shown = [...body.rows].filter((row) => !row.hidden);
    download("worst-rows.csv", csv([names.map(harmless), ...shown.map((row) => [...row.cells].map(written))]));
  });
  find.addEventListener("input", filter);
  decision.addEventListener("change", filter);
  byId("tools").hidden = false;
  filter();
})();
