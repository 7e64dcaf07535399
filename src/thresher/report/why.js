// Why a row is on the list: what speaks for and against its label, as small bars and sentences.
function explained(row, review) {
  const own = review.names[row.label];
  const parts = [shown(row), bars(row, review, own)];
  if (row.targets) {
    const [near, expected, usual] = row.targets;
    parts.push(make("p", {}, `The rows like it (about ${near}) expect ${expected}, give or take ${usual}. Its target is ${own}.`));
  }
  if (row.like) parts.push(named("Most like it", row.like, review, "none"));
  if (row.against || row.for) {
    parts.push(named("Most like it, with another label", row.against, review, "none"));
    parts.push(named(`Most like it, labeled ${own} too`, row.for, review, "none"));
  }
  if (row.copies) {
    const more = row.copied - row.copies.length;
    parts.push(named("Copies of it", row.copies, review, "none", more));
  }
  if (row.unlike) {
    const lines = row.unlike.map(([cell, said]) => make("li", {}, make("strong", {}, cell), ` – ${said}`));
    parts.push(make("div", { className: "unlike" }, make("h4", {}, `What is unlike other ${own} rows`), make("ul", {}, ...lines)));
  }
  return parts.filter(Boolean);

  function shown({ text, image }) {
    if (!text && !image) return null;
    const part = make("div", { className: "shown" });
    if (image) part.append(make("img", { src: image, alt: `The picture of row ${row.row}` }));
    if (text) part.append(make("blockquote", {}, text));
    return part;
  }

  function named(title, rows, { names }, none, more = 0) {
    const list = (rows ?? []).map(([name, label]) =>
      make("li", {}, `${name}: `, make("strong", { className: label === row.label ? "same" : "other" }, names[label] ?? label)));
    if (more > 0) list.push(make("li", {}, `and ${more.toLocaleString("en")} more`));
    return make("div", {}, make("h4", {}, title), list.length ? make("ul", {}, ...list) : make("p", {}, none));
  }

  function bars({ bars: numbers, kind }, { names }) {
    if (!numbers) return null;
    const most = Math.max(...numbers.map(([, number]) => Math.abs(number)), kind === "share" ? 1 : 1e-12);
    const lines = numbers.map(([label, number]) => {
      const bar = make("span", { className: number < 0 ? "fill below" : "fill" });
      bar.style.width = `${100 * Math.abs(number) / most}%`;
      const said = kind === "share" ? percent(number) : number.toPrecision(3);
      return make("tr", { className: label === row.label ? "same" : "other" }, make("th", { scope: "row" }, names[label]),
        make("td", { className: "track" }, bar), make("td", { className: "number" }, said));
    });
    const title = kind === "share" ? "What the rows like it are labeled" : "What it would be worth under each label";
    return make("div", {}, make("h4", {}, title), make("table", { className: "bars" }, make("tbody", {}, ...lines)));
  }

  function percent(share) {
    if (share > 0 && share < 0.005) return "under 1%";
    return share >= 0.995 && share < 1 ? "over 99%" : `${Math.round(100 * share)}%`;
  }
}
