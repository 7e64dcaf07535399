"""The report in a real browser: Chromium without a window, driven by chromedriver."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
from browsers import SIZES, cells, downloaded, needed, resize, show, visit
from pages import EVIL, blobs

import thresher as th
from thresher.report import gather, write_report
from thresher.tables.columns import Columns
from thresher.tables.copies import Copies
from thresher.tables.formulas import harmless_text

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

pytestmark = needed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def evidence():
    X, y, X_val, y_val, _ = blobs(400, 150, flipped=0.15)
    names = {
        "ant": "ant 10",
        "bee": "ant 9",
        "cat": EVIL + ', a label that is long, "quoted" and has commas',
    }
    y, y_val = ([names[label] for label in labels] for labels in (y, y_val))
    owners = [f"=1+{i % 7}" for i in range(400)]  # a spreadsheet would compute it
    options = {"radius": 1.8, "metric": "euclidean", "owners": owners}
    valuation = th.tknn_shapley(X, y, X_val, y_val, **options)
    ids = [f"id-{i * 7 % 400:03d}" for i in range(400)]
    text = ["-1.5", "-2e-3", "+3", "-x", "=2+2", "'@a", "7", "\u202eabc"]  # as a .csv has them
    show = {"=text": [text[i % 8] for i in range(400)], "number": (-X[:, 0]).tolist()}
    show["gap"] = [None if i % 3 else i for i in range(400)]
    record = {"command": "thresher value"}
    return gather(valuation, X, y, X_val, y_val, ids=ids, record=record, show=show)


@pytest.fixture(scope="module")
def address(folder, evidence):
    write_report(folder / "report.html", evidence)
    return (folder / "report.html").as_uri()


@pytest.fixture
def page(browser, address):
    return visit(browser, address)


def head(page, column):
    """The button that sorts by a column, once the page has it."""

    def found(page):
        buttons = page.find_elements(By.CSS_SELECTOR, "#worst thead button")
        return next((b for b in buttons if b.text.strip() == column), None)

    return WebDriverWait(page, 30).until(found)


def test_the_page_asks_for_nothing_and_complains_of_nothing(page):
    page.get_log("performance"), page.get_log("browser")  # of the empty tab before
    page.refresh()
    asked = []
    for entry in page.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert asked
    assert all(url.endswith("report.html") for url in asked), asked
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert page.find_elements(By.CSS_SELECTOR, "img, iframe, link") == []


def test_markup_from_outside_would_not_run(page):
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    )
    assert page.execute_script("return window.ran ?? 0") == 0
    assert any("Content Security Policy" in entry["message"] for entry in page.get_log("browser"))


def test_sorting_by_value_sorts_both_ways(page, evidence):
    head(page, "value").click()
    values = [float(cell) for cell in cells(page, "value")]
    assert values == sorted(values)
    head(page, "value").click()
    turned = [float(cell) for cell in cells(page, "value")]
    assert turned == sorted(values, reverse=True)
    assert len(turned) == len(evidence.lowest.rows)
    cell = page.find_element(By.CSS_SELECTOR, "#worst th[aria-sort]")
    assert cell.get_attribute("aria-sort") == "descending"
    assert cell.text.strip() == "value"


def test_sorting_numbers_is_not_sorting_text(page):
    head(page, "near").click()
    near = [float(cell) for cell in cells(page, "near")]
    assert near == sorted(near)
    assert [str(n) for n in near] != sorted(str(n) for n in near)


def test_sorting_by_text_works_from_the_keyboard(page):
    button = head(page, "label")
    button.send_keys(Keys.ENTER)
    labels = cells(page, "label")
    order = ["ant 9", "ant 10"]
    rest = [label for label in labels if label not in order]
    assert [label for label in labels if label in order] == sorted(
        (label for label in labels if label in order), key=order.index
    )
    assert labels[: len(rest)] == rest or labels[-len(rest) :] == rest
    head(page, "id").send_keys(Keys.SPACE)
    ids = cells(page, "id")
    assert ids == sorted(ids)


def test_rows_without_an_answer_come_last_both_ways(page, evidence):
    missing = sum(row[-1] is None for row in evidence.lowest.rows)
    assert 0 < missing < len(evidence.lowest.rows)
    for _ in range(2):
        head(page, "gap").click()
        assert cells(page, "gap")[-missing:] == [""] * missing


def test_filters_filter_and_the_count_follows(page, evidence):
    count = page.find_element(By.ID, "count")
    total = len(evidence.lowest.rows)
    assert count.text == f"Showing {total} of {total} rows"
    columns = evidence.lowest.columns
    suggestion, label = columns.index("suggestion"), columns.index("label")
    Select(page.find_element(By.ID, "pick-suggestion")).select_by_value("relabel")
    wanted = [row for row in evidence.lowest.rows if row[suggestion] == "relabel"]
    assert cells(page, "row") == [str(row[0]) for row in wanted]
    assert count.text == f"Showing {len(wanted)} of {total} rows"
    Select(page.find_element(By.ID, "pick-label")).select_by_value("ant 9")
    wanted = [row for row in wanted if row[label] == "ant 9"]
    assert len(wanted) > 0
    assert cells(page, "row") == [str(row[0]) for row in wanted]
    page.find_element(By.ID, "find").send_keys(wanted[0][1].upper())
    assert cells(page, "id") == [wanted[0][1]]
    assert count.text == f"Showing 1 of {total} rows"
    page.find_element(By.ID, "find").send_keys("nowhere")
    assert count.text == f"Showing 0 of {total} rows"


def test_the_download_holds_the_rows_shown_in_their_order(page, evidence, folder):
    Select(page.find_element(By.ID, "pick-suggestion")).select_by_value("relabel")
    head(page, "id").click()
    page.find_element(By.ID, "csv").click()
    names, *rows = csv.reader(downloaded(folder / "worst-rows.csv").splitlines())
    assert names == [written(name) for name in evidence.lowest.columns]
    assert [row[0] for row in rows] == cells(page, "row")
    known = {str(row[0]): row for row in evidence.lowest.rows}
    for row in rows:
        assert row == [written(cell) for cell in known[row[0]]]
    texts = {row[names.index("'=text")] for row in rows}
    assert texts == {"-1.5", "-2e-3", "+3", "'-x", "'=2+2", "''@a", "7", "\\u202eabc"}
    assert any(row[names.index("number")].startswith("-") for row in rows)


def written(cell):
    """A cell of the download; text that a spreadsheet would compute is made text."""
    return "" if cell is None else str(harmless_text(cell)).replace("\u202e", "\\u202e")


def centers(page):
    """Where the marks of the map are, in pixels."""
    script = """
      return [...document.querySelectorAll("svg.map [data-x]")].map((e) => e.getBoundingClientRect())
        .map((b) => [b.x + b.width / 2, b.y + b.height / 2]);
    """
    return np.array(page.execute_script(script))


def test_pointing_at_a_mark_shows_its_row_and_not_that_of_another_close_by(page, evidence):
    page.execute_script("document.querySelector('svg.map').scrollIntoView({block: 'center'})")
    places, plane = centers(page), evidence.map
    assert len(places) == len(plane.rows)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    close = (apart.min(axis=1) > 3) & (np.triu(apart < 9).any(axis=1))  # a later one would win
    mark = int(np.flatnonzero(close)[0])
    ActionChains(page).move_to_element(
        page.find_elements(By.CSS_SELECTOR, "svg.map [data-x]")[mark]
    ).perform()
    tip = page.find_element(By.ID, "tip")
    assert tip.is_displayed()
    story = [" ".join(part.split()) for part in plane.stories[mark].split(" · ")]
    assert story[0] == f"row {plane.rows[mark]}"
    assert tip.text.split("\n")[:3] == story[:3]
    assert tip.text.endswith(story[-1])
    ActionChains(page).move_to_element(page.find_element(By.ID, "todo")).perform()
    assert not tip.is_displayed()


def test_tapping_a_mark_shows_its_row(page, evidence):
    resize(page, 320, 640)
    worst = page.find_elements(By.CSS_SELECTOR, "svg.map [data-x]")[-1]
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", worst)
    box = page.execute_script("const b = arguments[0].getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]", worst)  # fmt: skip
    touch = {"x": box[0], "y": box[1]}
    page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [touch]})
    page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    tip = page.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert tip.text.startswith(f"row {evidence.map.rows[-1]}\n")
    left, right = page.execute_script("const b = arguments[0].getBoundingClientRect(); return [b.left, b.right]", tip)  # fmt: skip
    assert 0 <= left < right <= 320


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("opened", [False, True])
def test_the_page_itself_never_scrolls_sideways(page, width, height, opened):
    check_width(page, width, height)
    page.execute_script(
        "for (const d of document.querySelectorAll('details')) d.open = arguments[0]", opened
    )
    check_width(page, width, height)


def check_width(page, width, height):
    resize(page, width, height)
    wide = page.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    script = """
      const inside = (e) => e.closest(".table") || e.closest("svg");
      return [...document.body.querySelectorAll("*")].filter((e) => !inside(e))
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80));
    """
    assert page.execute_script(script) == []


def test_the_page_of_a_forest_lists_rows_to_review_and_fits(page, folder):
    X, y, _, _, _ = blobs(150, flipped=0.1)
    X[1], y[0], y[1] = X[0], "ant", "a label that is long and " * 4
    columns = Columns(tuple(y), pa.table({f"x{j}": X[:, j] for j in range(4)}))
    valuation, findings = th.forest_findings(X, y, trees=20)
    found = gather(valuation, X, y, findings=findings, copies=Copies.of(columns))
    write_report(folder / "forest.html", found)
    page.get((folder / "forest.html").as_uri())
    assert {int(row) for row in cells(page, "row")[:2]} == {0, 1}  # copies with different labels
    head(page, "score").click()
    scores = [float(cell) for cell in cells(page, "score")]
    assert scores == sorted(row[found.lowest.columns.index("score")] for row in found.lowest.rows)
    for size in SIZES:
        check_width(page, *size)
    assert page.get_log("browser") == []


def channels(color):
    numbers = [float(part) for part in color[color.index("(") + 1 : -1].split(",")]
    return np.array(numbers[:3]) / 255


def contrast(one, other):
    """The contrast of two colors, as WCAG 2 defines it."""
    lights = []
    for color in (one, other):
        linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
        lights.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(lights) / min(lights)


TEXTS = """
  const solid = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (!color.startsWith("rgba(") ) return color;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.body.querySelectorAll("*")].filter((e) => e.checkVisibility()
      && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())
      && !["SCRIPT", "STYLE", "title"].includes(e.tagName))
    .map((e) => [e.namespaceURI.endsWith("svg") ? getComputedStyle(e).fill : getComputedStyle(e).color, solid(e)]);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_keeps_its_contrast_in_light_and_dark(page, scheme):
    show(page, scheme=scheme)
    paper = channels(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert (paper.mean() > 0.9) == (scheme == "light")
    assert (paper.mean() < 0.2) == (scheme == "dark")
    found = {tuple(pair) for pair in page.execute_script(TEXTS)}
    assert len(found) > 4
    for ink, ground in found:
        assert contrast(channels(ink), channels(ground)) >= 4.5, (ink, ground)
    for style in ("rect.good", "rect.bad", ".line.lowest", ".line.random", ".spot.n2", ".spot.p2"):
        drawn = page.find_element(By.CSS_SELECTOR, f".chart {style}")
        side = "fill" if "rect" in style or "spot" in style else "stroke"
        color = channels(
            page.execute_script(f"return getComputedStyle(arguments[0]).{side}", drawn)
        )
        assert contrast(color, paper) >= (1.9 if style == "rect.bad" else 3), style


def test_printing_shows_everything(page, evidence):
    show(page, media="print", scheme="dark")
    assert (
        channels(
            page.execute_script("return getComputedStyle(document.body).backgroundColor")
        ).min()
        == 1
    )
    assert len(cells(page, "row")) == len(evidence.lowest.rows)
    hidden = page.execute_script("""
      return [...document.querySelectorAll("section, table, td, th, figure, dd, li, pre")]
        .filter((e) => !e.closest("nav, .tools, .review, [hidden]") && (!e.checkVisibility({contentVisibilityAuto: true})
          || (e.textContent.trim() && !e.getClientRects().length))).map((e) => e.outerHTML.slice(0, 80));
    """)
    assert hidden == []
    clipped = page.execute_script("""
      return [...document.querySelectorAll(".table")].filter((e) => e.scrollHeight > e.clientHeight + 2)
        .map((e) => getComputedStyle(e).overflowY);
    """)
    assert set(clipped) <= {"visible"}
    assert not page.find_element(By.ID, "tools").is_displayed()
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(printed) > 50_000


def test_without_javascript_the_table_is_there(page, evidence, address):
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.get(address)
    rows = page.find_elements(By.CSS_SELECTOR, "#worst tbody tr")
    assert len(rows) == len(evidence.lowest.rows)
    assert rows[0].is_displayed()
    assert rows[0].find_element(By.TAG_NAME, "th").text == str(evidence.lowest.rows[0][0])
    assert not page.find_element(By.ID, "tools").is_displayed()
    assert page.find_elements(By.CSS_SELECTOR, "#worst button") == []
    mark = page.find_elements(By.CSS_SELECTOR, "svg.map [data-x] title")[-1]
    assert mark.get_attribute("textContent").startswith(f"row {evidence.map.rows[-1]} · ")
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
