"""Made-up points with flipped labels, and a reader of HTML pages, for the tests of reports."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

import thresher as th

VOID = {"meta", "input", "br", "path", "rect", "link", "img"}
EVIL = "<script>alert(1)</script>"


def blobs(n=300, m=120, *, classes=3, width=4, flipped=0.1, seed=0):
    """Points of a few clusters, some of their labels flipped; and a validation set."""
    random = np.random.default_rng(seed)
    centers = 2.5 * random.normal(size=(classes, width))
    codes, codes_val = random.integers(0, classes, n), random.integers(0, classes, m)
    X, X_val = (
        centers[each] + random.normal(size=(len(each), width)) for each in (codes, codes_val)
    )
    names = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[:classes]
    y = names[codes]
    wrong = np.zeros(n, bool)
    if flipped:
        y, wrong = th.flip_labels(y, fraction=flipped, seed=seed)
    return X, y, X_val, names[codes_val], wrong


def overlapping(n=2000, m=500, *, flipped=0.0, seed=0):
    """Two classes that overlap, so that right labels often look wrong."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n + m, 3))
    y = (X[:, 0] + 0.7 * random.normal(size=n + m) > 0).astype(int)
    rows, labels = X[:n], y[:n]
    if flipped:
        labels, _ = th.flip_labels(labels, fraction=flipped, seed=seed)
    return rows, labels, X[n:], y[n:]


RADIUS = 1.8
FLIPPED = blobs()
DATA = FLIPPED[:4]


def value(data=DATA, **options):
    """Values within a radius, of points with flipped labels if no others are given."""
    return th.tknn_shapley(*data, **({"radius": RADIUS, "metric": "euclidean"} | options))


VALUATION = value()


class Page(HTMLParser):
    """What a page holds: tables by id, texts by id, tags, and whether all of them are closed."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tables, self.tags, self.ids = text, {}, [], []
        self.open, self.rows, self.cell, self.words = [], None, None, {}
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
            self.words[found["id"]] = []
        if tag not in VOID:
            self.open.append((tag, found.get("id")))
        if tag == "table":
            self.rows = self.tables[found.get("id", len(self.tables))] = []
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in {"td", "th"} and self.rows is not None:
            self.cell = [found.get("data-v"), ""]

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        opened, _ = self.open.pop()
        assert opened == tag, f"{opened} is closed by {tag}"
        if tag in {"td", "th"} and self.cell is not None:
            given, text = self.cell
            self.rows[-1].append(text.strip() if given is None else given)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[1] += data
        for _, name in self.open:
            if name is not None:
                self.words[name].append(data)

    def said(self, name):
        """All text inside the element of this id."""
        return " ".join("".join(self.words[name]).split())

    def table(self, name):
        """The rows of a table below its head."""
        return self.tables[name][1:]

    def numbers(self, name, first=1):
        """The numbers of a table, from a column on."""
        return np.array([[float(cell) for cell in row[first:]] for row in self.table(name)])
