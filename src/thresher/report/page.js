"use strict";
(() => {
  const table = document.getElementById("worst");
  if (table) sortable(table);
  document.querySelectorAll("svg.map").forEach(hoverable);
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));

  function content(cell) { return cell.dataset.v ?? cell.textContent.trim(); }

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const names = heads.map((head) => head.textContent.trim());
    const rows = [...body.rows];
    const words = rows.map((row) => row.textContent.toLowerCase());
    const count = document.getElementById("count");
    const find = document.getElementById("find");
    const picks = ["suggestion", "label"].map((name) => pick(name)).filter(Boolean);

    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
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
      const sorted = [...rows].sort((a, b) => {
        const [p, q] = [keys.get(a), keys.get(b)];
        if (p === "" || q === "") return (p === "") - (q === "");
        return sign * (numeric ? p - q : p.localeCompare(q, "en", { numeric: true }));
      });
      body.append(...sorted);
    }

    function pick(name) {
      const place = names.indexOf(name);
      const select = document.getElementById("pick-" + name);
      if (!select) return null;
      if (place < 0) { select.parentElement.remove(); return null; }
      const found = [...new Set(rows.map((row) => content(row.cells[place])))];
      found.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
      found.forEach((text) => select.add(new Option(text, text)));
      select.addEventListener("change", filter);
      return { place, select };
    }

    function filter() {
      const wanted = find.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row, i) => {
        const hit = words[i].includes(wanted) && picks.every(({ place, select }) =>
          select.selectedIndex === 0 || content(row.cells[place]) === select.value);
        row.hidden = !hit;
        shown += hit;
      });
      count.textContent = `Showing ${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
    }

    // spreadsheets compute text that begins like this; numbers stay numbers
    function harmless(text) {
      const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text);
      return !number && /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
    }

    function quoted(text) { return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; }

    function csv() {
      const written = (cell) => cell.dataset.v === undefined ? harmless(content(cell)) : content(cell);
      const lines = [names.map(harmless), ...[...body.rows].filter((row) => !row.hidden)
        .map((row) => [...row.cells].map(written))];
      return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
    }

    document.getElementById("csv").addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
      link.download = "worst-rows.csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    });
    find.addEventListener("input", filter);
    document.getElementById("tools").hidden = false;
    filter();
  }

  function hoverable(svg) {
    const spots = [...svg.querySelectorAll("[data-x]")].map((mark) => {
      const title = mark.querySelector("title");
      const text = title.textContent.replaceAll(" · ", "\n");
      title.remove();
      return { mark, text, x: +mark.dataset.x, y: +mark.dataset.y };
    });
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.id = "tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    document.body.append(tip);
    let on = null;

    function show(event) {
      const turn = svg.getScreenCTM();
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(turn.inverse());
      const reach = (event.pointerType === "touch" ? 22 : 12) / turn.a;
      let best = null, least = reach * reach;
      for (const spot of spots) {
        const far = (spot.x - at.x) ** 2 + (spot.y - at.y) ** 2;
        if (far <= least) { best = spot; least = far; }
      }
      hide();
      if (!best) return;
      on = best.mark;
      on.classList.add("on");
      tip.textContent = best.text;
      tip.hidden = false;
      const box = tip.getBoundingClientRect();
      const left = Math.min(event.clientX + 14, innerWidth - box.width - 6);
      const above = event.clientY - box.height - 12;
      tip.style.left = `${Math.max(6, left)}px`;
      tip.style.top = `${above < 6 ? event.clientY + 18 : above}px`;
    }

    function hide() {
      if (on) on.classList.remove("on");
      on = null;
      tip.hidden = true;
    }

    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    addEventListener("scroll", hide, { passive: true, capture: true });
  }
})();
