// Which page the search shows first. Sphinx ranks a page by its best match alone, so many pages tie.
// Guides come before the reference, and measurements last. Each page here is the home of some words.
const HOMES = {
  "attacks": /attack|audit|membership/,
  "cli": /^-|^thresher |exit/,
  "command": /embed|excel|image|parquet|spreadsheet|table|text/,
  "concepts": /banzhaf|leave-one-out|semivalue|utility|validation/,
  "federation": /federat|silo/,
  "findings": /cleanlab|relabel/,
  "payouts": /^(owner|pay|payment)s?$/,
  "privacy": /budget|delta|differential|epsilon|ledger|noise|private/,
  "regression": /regress/,
  "scale": /big|cluster|dask|large|live|memory|million/,
  "tutorials/wrong-labels": /csv|mislabel|(noisy|wrong) label/,
};
const FOLDERS = { api: -5, gallery: -3, reproduction: -12, results: -12, tutorials: 1 };

var Scorer = {
  score: ([page, title, , , score]) => {
    const query = new URLSearchParams(location.search).get("q").toLowerCase().trim();
    const heading = title.toLowerCase().split(" > ").pop();
    return (
      score
      + (FOLDERS[page.split("/")[0]] ?? 0)
      - (page === "changelog" ? 60 : 0)
      + (HOMES[page]?.test(query) ? 40 : 0)
      + (heading === query ? 50 : 0)
    );
  },
  // what follows are the defaults of Sphinx
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
