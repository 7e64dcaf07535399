// The review: a decision about each listed row, kept in this browser and saved as decisions.csv.
(() => {
  const source = byId("review-data");
  if (!source) return;
  const review = JSON.parse(source.textContent);
  const body = byId("worst").tBodies[0];
  const lines = [...body.rows];
  const rows = review.rows.map((row, i) => ({ ...row, line: lines[i] }));
  const rowOf = new Map(rows.map((row) => [row.line, row]));
  const columns = ["row", "id", "label", "decision", "new_label", "input_digest"];
  const words = { relabel: "relabel to", correct: "correct to", drop: "drop", keep: "keep", skip: "skipped" };
  const change = review.numbers ? "correct" : "relabel";
  let decisions = load();
  let current = null;
  let past = []; // rows in the order of the answers
  let answered = false; // whether the row under review came up by an answer

  // what was decided: row number -> { id, label, decision, new_label }

  function load() {
    try { return JSON.parse(localStorage.getItem(review.key)) ?? {}; } catch { return {}; }
  }

  function store() {
    try {
      localStorage.setItem(review.key, JSON.stringify(decisions));
      byId("kept").textContent = "Kept in this browser until you save them.";
    } catch {
      byId("kept").textContent = "This browser keeps nothing: save before you close the page.";
    }
  }

  /** The decision about a row; one about another label of its is none. */
  function decided(row) {
    const found = decisions[row.row];
    return found && found.label === review.labels[row.label] ? found : null;
  }

  function skipped(row) { return decided(row)?.decision === "skip"; }

  function decide(decision, label = "") {
    const row = current;
    if (!row) return;
    const own = review.labels[row.label];
    if (decision === change && label === own) decision = "keep";
    decisions[row.row] = { id: row.id ?? "", label: own, decision, new_label: decision === change ? label : "" };
    store();
    past.push(row);
    mark(row);
    progress();
    step(1);
    answered = true;
  }

  /** Take back the last answer; where somebody moved to a row that has one, that of this row. */
  function undo() {
    const row = !answered && decided(current) ? current : [...past].reverse().find(decided);
    if (!row) return;
    delete decisions[row.row];
    past = past.filter((each) => each !== row);
    store();
    mark(row);
    progress();
    show(row);
  }

  // what is shown

  function decisionText(row) {
    const found = decided(row);
    if (!found) return "";
    if (found.decision !== change) return words[found.decision];
    return `${words[change]} ${review.numbers ? Number(Number(found.new_label).toPrecision(6)) : found.new_label}`;
  }

  function mark(row) {
    const text = decisionText(row);
    row.line.dataset.decision = text && decided(row).decision;
    row.line.querySelector(".decided")?.remove();
    if (text) row.line.querySelector(".badge").parentElement.append(make("span", { className: "decided" }, `${skipped(row) ? "" : "✓ "}${text}`));
  }

  function progress() {
    const done = rows.filter((row) => decided(row) && !skipped(row)).length;
    Object.assign(byId("done"), { max: rows.length, value: done });
    byId("done-text").textContent = `${done.toLocaleString("en")} of ${countOf(rows.length, "row")} decided`;
    byId("save").disabled = !Object.keys(decisions).length;
  }

  function shown() { return [...body.rows].filter((line) => !line.hidden).map((line) => rowOf.get(line)); }

  function step(by) {
    const list = shown();
    const place = list.indexOf(current);
    const next = list[Math.min(Math.max(place + by, 0), list.length - 1)];
    if (next) show(next);
  }

  function show(row) {
    current?.line.removeAttribute("aria-current");
    current = row;
    answered = false;
    row.line.setAttribute("aria-current", "true");
    const list = shown();
    const [own, best] = [review.names[row.label], review.names[row.best]];
    byId("card-row").textContent = `Row ${row.row}${row.name === undefined ? "" : ` · ${row.name}`}`;
    byId("card-place").textContent = `${list.indexOf(row) + 1} of ${list.length}`;
    byId("card-label").textContent = own;
    byId("card-ask").textContent = asked(row);
    byId("card-best").textContent = row.suggestion === "drop" ? "drop the row" : best ?? (review.numbers ? "another number" : "another label");
    byId("card-word").textContent = row.suggestion;
    byId("card-word").className = `badge ${row.suggestion}`;
    const drops = row.suggestion === "drop";
    byId("yes-text").textContent = drops ? "Yes, drop it" : `Yes, it is ${best}`;
    byId("yes").disabled = best === undefined && !drops;
    byId("no-text").textContent = `No, keep ${own}`;
    const text = decisionText(row);
    byId("card-decision").textContent = text && (skipped(row) ? "Skipped" : `Decided: ${text}`);
    byId("undo").disabled = !text && !past.some(decided);
    byId("other").value = "";
    byId("why").replaceChildren(...explained(row, review));
    scroll(row.line);
    byId("announce").textContent =
      `Row ${row.row}, ${review.numbers ? "target" : "labeled"} ${own}, suggestion ${row.suggestion}` +
      `${best ? `, ${review.numbers ? "expected" : "best other label"} ${best}` : ""}. ${text}`;
  }

  function asked(row) {
    if (row.suggestion !== "drop") return "Is it";
    return `No other ${review.numbers ? "number" : "label"} fits either:`;
  }

  /** Bring a line into view inside the list, and leave the page where it is. */
  function scroll(line) {
    const box = line.closest(".table");
    const head = box.querySelector("thead").offsetHeight;
    if (line.offsetTop - head < box.scrollTop) box.scrollTop = line.offsetTop - head;
    const end = line.offsetTop + line.offsetHeight - box.clientHeight;
    if (end > box.scrollTop) box.scrollTop = end;
  }

  // answers

  const answers = {
    y: () => current.suggestion === "drop" ? decide("drop")
      : current.best !== undefined && decide(change, review.labels[current.best]),
    n: () => decide("keep"),
    d: () => decide("drop"),
    s: () => decide("skip"),
    u: undo,
    j: () => step(1),
    k: () => step(-1),
    o: () => byId("other").focus(),
  };

  for (const [key, id] of Object.entries({ y: "yes", n: "no", d: "drop", s: "skip", u: "undo", j: "next", k: "previous" })) {
    byId(id).addEventListener("click", answers[key]);
  }

  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !byId("keys").checked) return;
    const answer = answers[event.key.toLowerCase()];
    if (!answer || !current) return;
    event.preventDefault();
    answer();
  });

  byId("other-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("other").value.trim();
    const place = review.names.indexOf(text);
    if (review.numbers) {
      const right = text && Number.isFinite(Number(text));
      byId("other").setCustomValidity(right ? "" : "A number is needed, such as 17.5");
      if (!right) { byId("other").reportValidity(); return; }
      decide(change, text);
    } else if (text) decide(change, place < 0 ? text : review.labels[place]);
    byId("other").blur();
  });

  body.addEventListener("click", (event) => {
    const row = rowOf.get(event.target.closest("tr"));
    if (row) show(row);
  });

  document.addEventListener("filtered", () => {
    if (!current?.line.hidden) step(0); else if (shown().length) show(shown()[0]);
  });

  // files

  byId("save").addEventListener("click", () => {
    const found = Object.entries(decisions).sort(([a], [b]) => a - b);
    download("decisions.csv", csv([columns, ...found.map(([row, each]) =>
      [row, harmless(each.id), harmless(each.label), each.decision, harmless(each.new_label), review.digest])]));
    byId("kept").textContent = `Saved ${countOf(found.length, "decision")} as decisions.csv.`;
  });

  byId("load").addEventListener("change", async (event) => {
    const [names, ...found] = readCsv(await event.target.files[0].text());
    event.target.value = "";
    const entries = found.map((line) => Object.fromEntries(names.map((name, i) => [name, meant(line[i] ?? "")])));
    const ours = entries.filter((each) => each.input_digest === review.digest && each.decision in words);
    if (!ours.length || ours.length < entries.length) {
      byId("kept").textContent = "Not loaded: these decisions are about another table.";
      return;
    }
    for (const { row, id, label, decision, new_label } of ours) decisions[row] = { id, label, decision, new_label };
    store();
    rows.forEach(mark);
    progress();
    show(current);
    byId("kept").textContent = `Loaded ${countOf(ours.length, "decision")}.`;
  });

  // on paper: why the first rows are on the list, in place of the card

  addEventListener("beforeprint", () => {
    const first = shown().slice(0, 10);
    const cards = first.map((row) => {
      const target = row.best === undefined || row.suggestion === "drop" ? "" : ` to ${review.names[row.best]}`;
      const said = ["relabel", "correct"].includes(row.suggestion) ? row.suggestion + target : row.suggestion;
      const title = `Row ${row.row}${row.name === undefined ? "" : ` · ${row.name}`}: ${review.names[row.label]}, ${said}`;
      return make("div", { className: "printed" }, make("h4", {}, title), make("div", { className: "why" }, ...explained(row, review)));
    });
    byId("printed").replaceChildren(...cards);
    if (cards.length) byId("printed").prepend(make("h3", {}, cards.length > 1 ? `Why the first ${cards.length} rows are on the list` : "Why this row is on the list"));
  });
  addEventListener("afterprint", () => byId("printed").replaceChildren());

  byId("other").addEventListener("input", () => byId("other").setCustomValidity(""));
  if (!review.numbers) byId("labels").append(...review.names.map((name) => new Option(name)));
  rows.forEach(mark);
  progress();
  byId("review").hidden = false;
  byId("pick-decision").parentElement.hidden = false;
  const first = rows.find((row) => !decided(row)) ?? rows[0];
  if (first) show(first);
})();
