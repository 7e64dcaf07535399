"""Parts of the page in a real browser: map, words that are explained, tables, pictures."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from browsers import needed, resize, visit
from pages import blobs
from releases import release
from tabular import thresher

import thresher as th
from thresher.report import gather, write_report

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = needed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def dense(folder):
    """A report of more rows than a map can draw."""
    data = blobs(6000, 200, flipped=0.02)[:4]
    found = gather(th.tknn_shapley(*data, radius=1.8, metric="euclidean"), *data)
    write_report(folder / "dense.html", found)
    return found


@pytest.fixture
def page(browser, folder, dense):
    return visit(browser, (folder / "dense.html").as_uri())


def fill(page, selector):
    script = "return getComputedStyle(document.querySelector(arguments[0])).fill"
    return page.execute_script(script, selector)


def test_the_map_is_colored_by_value_or_by_label(page):
    by_value = fill(page, "svg.map .cell.p")
    page.find_element(By.CSS_SELECTOR, "[name=map-color][value=label]").click()
    colors = {fill(page, f"svg.map .cell.k{kind}") for kind in range(3)}
    assert len(colors) == 3
    legend = page.find_element(By.CSS_SELECTOR, "#map .by-label")
    assert legend.is_displayed()
    assert sorted(legend.text.split()) == ["ant", "bee", "cat"]
    assert not page.find_element(By.CSS_SELECTOR, "#map .by-value").is_displayed()
    page.find_element(By.CSS_SELECTOR, "[name=map-color][value=value]").click()
    assert fill(page, "svg.map .cell.p") == by_value


def test_a_square_says_how_many_rows_it_stands_for(page, dense):
    page.execute_script("document.querySelector('svg.map').scrollIntoView({block: 'center'})")
    apart = page.execute_script("""
      const spots = [...document.querySelectorAll("svg.map [data-x]")].map((e) => [+e.dataset.x, +e.dataset.y]);
      const cells = [...document.querySelectorAll("svg.map .cell")];
      const far = (c) => Math.min(...spots.map(([x, y]) => Math.hypot(x - c.x.baseVal.value, y - c.y.baseVal.value)));
      const inside = (c) => c.x.baseVal.value > 30 && c.x.baseVal.value < 320 && c.y.baseVal.value > 30 && c.y.baseVal.value < 280;
      const best = cells.map((c) => inside(c) ? far(c) : -1);
      return best.indexOf(Math.max(...best));
    """)
    cell = page.find_elements(By.CSS_SELECTOR, "svg.map .cell")[apart]
    ActionChains(page).move_to_element(cell).perform()
    text = page.find_element(By.ID, "tip").text
    rows = dense.map.density.cells[apart].rows
    assert text.startswith(f"{rows:,} row")
    assert "mostly" in text


def width_of(page):
    return page.execute_script(
        "return document.querySelector('svg.map .plane').getBoundingClientRect().width"
    )


def test_the_map_zooms_by_mouse_and_by_keys(page):
    whole = width_of(page)
    page.find_element(By.ID, "zoom-in").click()
    assert width_of(page) == pytest.approx(1.6 * whole, rel=0.02)
    page.find_element(By.ID, "zoom-all").click()
    assert width_of(page) == pytest.approx(whole, rel=0.01)
    svg = page.find_element(By.CSS_SELECTOR, "svg.map")
    svg.send_keys("+", "+", Keys.ARROW_LEFT, "-")
    assert width_of(page) == pytest.approx(1.6 * whole, rel=0.02)
    svg.send_keys("0")
    assert width_of(page) == pytest.approx(whole, rel=0.01)


def test_words_are_explained_on_hover_and_on_a_tap(page):
    word = page.find_element(By.CSS_SELECTOR, ".tiles.key .term")
    meaning = page.find_element(By.ID, word.get_attribute("popovertarget"))
    assert word.get_attribute("title") in meaning.get_attribute("textContent")
    assert not meaning.is_displayed()
    word.click()
    assert meaning.is_displayed()


def test_the_record_is_folded(browser, folder):
    values = th.Valuation(np.array([-0.5, 0.25]), "example", {}, 1.0, 0.5)
    write_report(folder / "record.html", gather(values, record={"key": "value"}))
    page = visit(browser, (folder / "record.html").as_uri())
    record = page.find_element(By.TAG_NAME, "pre")
    assert not record.is_displayed()
    page.find_element(By.CSS_SELECTOR, "#how summary").click()
    assert '"key": "value"' in record.text


def test_a_table_that_scrolls_says_so(page):
    hint = "Scroll the table sideways to see all columns"
    resize(page, 320, 640)
    for frame in page.find_elements(By.CSS_SELECTOR, ".table"):
        wide, told = page.execute_script(
            "const f = arguments[0]; return [f.scrollWidth > f.clientWidth + 1, f.previousElementSibling?.textContent ?? '']",
            frame,
        )
        assert (hint in told) == wide
    assert page.find_elements(By.CSS_SELECTOR, ".scrolls")


@pytest.mark.parametrize("size", [(320, 640), (1280, 900)])
def test_the_page_of_a_release_cuts_no_words(browser, folder, size):
    path = folder / f"release-{size[0]}.html"
    write_report(path, gather(None, release=release()))
    page = visit(browser, path.as_uri())
    resize(page, *size)
    cut = page.execute_script("""
      return [...document.querySelectorAll("th, td, dt, dd, p, h1, h2")]
        .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow !== "visible")
        .map((e) => e.textContent);
    """)
    assert cut == []


def test_lines_stay_inside_the_frame_of_the_removal_charts(page):
    outside = page.execute_script("""
      const found = [];
      for (const chart of document.querySelectorAll("#removal svg.chart")) {
        const frame = chart.querySelector(".inside").getBoundingClientRect();
        for (const line of chart.querySelectorAll(".line")) {
          const box = line.getBoundingClientRect();
          if (box.bottom > frame.bottom + 1 || box.top < frame.top - 1) found.push(line.className.baseVal);
        }
      }
      return found;
    """)
    assert outside == []


def test_pictures_and_their_rows_are_shown_together(browser, folder):
    from PIL import Image

    random = np.random.default_rng(0)
    with (folder / "shots.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["x", "z", "shot", "y"])
        for i in range(60):
            high = i % 2
            label = "low" if high and i < 6 else ["low", "high"][high]
            name = f"p{i}.png" if i != 3 else "absent.png"
            if i != 3:
                Image.new("RGB", (400, 300), (4 * i, 0, 0)).save(folder / name)
            table.writerow([f"{4 * high + random.normal():.3f}", f"{4 * high + random.normal():.3f}", name, label])  # fmt: skip
    done = thresher("value", folder / "shots.csv", "--image", "shot", "--trees", 20, "--method",
                    "forest", "--out", folder / "v.csv", "--report", folder / "shots.html")  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = visit(browser, (folder / "shots.html").as_uri())
    rows = page.find_elements(By.CSS_SELECTOR, "#worst tbody tr")
    for line in rows:
        line.click()
        number = int(line.find_element(By.TAG_NAME, "th").text)
        shown = page.find_elements(By.CSS_SELECTOR, "#why img")
        assert len(shown) == (number != 3)
        for picture in shown:
            assert picture.get_attribute("alt") == f"The picture of row {number}"
            assert page.execute_script("return arguments[0].naturalWidth", picture) == 160
    assert {1, 3} <= {int(line.find_element(By.TAG_NAME, "th").text) for line in rows}
    assert page.get_log("browser") == []
    assert "img-src data:" in page.page_source
