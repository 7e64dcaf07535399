"use strict";
// What the other scripts of the page share.

function byId(id) { return document.getElementById(id); }

/** An element with properties and children; texts become text, never markup. */
function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, entry] of Object.entries(properties)) {
    if (name in made && name !== "list") made[name] = entry; else made.setAttribute(name, entry);
  }
  made.append(...children);
  return made;
}

function content(cell) { return cell.dataset.v ?? cell.textContent.trim(); }

function countOf(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Text that no spreadsheet computes; numbers stay numbers. */
function harmless(text) {
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text);
  return !number && /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
}

/** What was meant by a text that was made harmless. */
function meant(text) { return /^'+[=+\-@\t\r\n＝＋－＠]/.test(text) ? text.slice(1) : text; }

function csv(lines) {
  const quoted = (text) => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

/** The cells of a CSV text, line by line. */
function readCsv(text) {
  const lines = [];
  let line = [];
  for (const [, quoted, plain, end] of text.replace(/^\ufeff/, "")
    .matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\r|\n|$)/g)) {
    line.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    if (line.length > 1 || line[0] !== "") lines.push(line);
    line = [];
  }
  return lines;
}

function download(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// printing shows everything
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((part) => { part.open = true; });
});
addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));

// a table that is wider than its frame says so, and can be scrolled by keys
function tellOfScrolling() {
  for (const frame of document.querySelectorAll(".table")) {
    const wide = frame.scrollWidth > frame.clientWidth + 1;
    frame.classList.toggle("wide", wide);
    if (wide && !frame.hasAttribute("tabindex")) {
      Object.assign(frame, { tabIndex: 0, role: "region", ariaLabel: "A table that can be scrolled" });
    }
    const hint = frame.previousElementSibling?.matches(".scrolls") ? frame.previousElementSibling : null;
    if (wide && !hint) frame.before(make("p", { className: "soft scrolls" }, "Scroll the table sideways to see all columns →"));
    if (!wide) hint?.remove();
  }
}
addEventListener("resize", tellOfScrolling);
addEventListener("toggle", tellOfScrolling, { capture: true });
addEventListener("DOMContentLoaded", tellOfScrolling);
