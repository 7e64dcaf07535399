"""The review in a real browser: decide row by row, save, clean, and value again."""

from __future__ import annotations

import csv
import hashlib

import numpy as np
import pytest
from browsers import cells, downloaded, needed, visit
from tabular import thresher

import thresher as th

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

pytestmark = needed
WRONG = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 200 rows with a few wrong labels, valued, with its report."""
    folder = tmp_path_factory.mktemp("review")
    random = np.random.default_rng(3)
    kinds = np.array(["ash", "=elm", "oak, red"])
    codes = random.integers(0, 3, 200)
    X = 4.0 * np.eye(3)[codes] + random.normal(size=(200, 3))
    y, _ = th.flip_labels(kinds[codes], fraction=WRONG / 200, seed=0)
    with (folder / "trees.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["name", "height", "width", "age", "plot", "kind"])
        for i in range(200):
            cells = [f"{x:.3f}" for x in X[i]]
            table.writerow([f"t{i}", *cells, f"plot {i % 3}", y[i]])
    done = value(folder, "trees.csv", "values.csv", "report.html")
    assert done.returncode == 0, done.stderr
    assert "value of each owner:\n  plot " in done.stderr
    assert "to decide row by row: open " in done.stderr
    return folder


def value(folder, table, out, report):
    return thresher(
        "value", folder / table, "--label", "kind", "--id", "name", "--owner", "plot",
        "--trees", 40, "--out", folder / out, "--report", folder / report,
    )  # fmt: skip


@pytest.fixture
def page(browser, folder):
    """The report, before anything was decided."""
    visit(browser, (folder / "report.html").as_uri())
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    return browser


def press(page, *keys):
    for key in keys:
        page.find_element(By.TAG_NAME, "body").send_keys(key)


def click(page, name):
    page.find_element(By.ID, name).click()


def text(page, name):
    return page.find_element(By.ID, name).text


def save(page, folder):
    click(page, "save")
    return list(csv.DictReader(downloaded(folder / "decisions.csv").splitlines()))


def test_a_whole_review_is_decided_saved_cleaned_and_valued_again(page, folder):
    rows = cells(page, "row")
    labels, best = cells(page, "label"), cells(page, "best label")
    digest = hashlib.sha256((folder / "trees.csv").read_bytes()).hexdigest()
    assert text(page, "card-row").startswith(f"Row {rows[0]}")
    assert text(page, "card-label") == labels[0]
    assert text(page, "card-best") == best[0]
    assert not page.find_element(By.ID, "save").is_enabled()
    press(page, "y")  # relabel
    click(page, "no")  # keep
    press(page, "o")
    page.switch_to.active_element.send_keys("birch", Keys.ENTER)
    press(page, "d", "s")
    for _ in rows[5:]:
        click(page, "yes")
    assert text(page, "done-text") == f"{len(rows) - 1} of {len(rows)} rows decided"  # one skipped
    decided = save(page, folder)
    assert [int(line["row"]) for line in decided] == sorted(map(int, rows))
    found = {line["row"]: line for line in decided}
    words = [found[row]["decision"] for row in rows]
    assert words == ["relabel", "keep", "relabel", "drop", "skip", *["relabel"] * len(rows[5:])]
    assert {line["input_digest"] for line in decided} == {digest}
    assert found[rows[0]]["new_label"].lstrip("'") == best[0]
    assert found[rows[2]]["new_label"] == "birch"
    assert found[rows[3]]["id"] == f"t{rows[3]}"
    apply_and_value_again(page, folder, found, rows)


def apply_and_value_again(page, folder, found, rows):
    click(page, "save")
    saved = downloaded(folder / "decisions.csv")
    (folder / "mine.csv").write_text(saved, newline="")
    cleaning = [
        "clean",
        folder / "trees.csv",
        "--decisions",
        folder / "mine.csv",
        "--label",
        "kind",
    ]
    done = thresher(*cleaning, "--out", folder / "clean.csv")
    assert done.returncode == 0, done.stderr
    before, after = (
        {line["name"]: line["kind"] for line in csv.DictReader((folder / name).read_text().splitlines())}
        for name in ("trees.csv", "clean.csv")
    )  # fmt: skip
    changed = {name for name in before if after.get(name) != before[name]}
    wanted = {f"t{row}" for row, line in found.items() if line["decision"] in {"relabel", "drop"}}
    assert changed == wanted
    assert after[f"t{rows[2]}"] == "birch"
    again = value(folder, "clean.csv", "values2.csv", "report2.html")
    assert again.returncode == 0, again.stderr
    visit(page, (folder / "report2.html").as_uri())
    assert text(page, "done-text").startswith("0 of ")  # another table, so nothing is decided
    refused = thresher("clean", folder / "clean.csv", *cleaning[2:], "--out", folder / "c3.csv")
    assert "is about another table" in refused.stderr


def test_progress_is_kept_in_the_browser_and_can_be_taken_back(page):
    rows = cells(page, "row")
    press(page, "y", "n")
    page.refresh()
    assert text(page, "done-text").startswith("2 of ")
    assert text(page, "card-row").startswith(f"Row {rows[2]}")  # the first that is open
    press(page, "k")
    assert text(page, "card-decision").startswith("Decided: keep")
    press(page, "u")
    assert text(page, "done-text").startswith("1 of ")
    assert text(page, "card-decision") == ""


def test_undo_takes_back_the_last_answer_and_what_is_skipped_is_not_decided(page):
    rows = cells(page, "row")
    assert not page.find_element(By.ID, "undo").is_enabled()
    press(page, "y", "n")
    click(page, "undo")
    assert text(page, "card-row").startswith(f"Row {rows[1]}")
    assert text(page, "done-text").startswith("1 of ")
    press(page, "u")
    assert text(page, "card-row").startswith(f"Row {rows[0]}")
    assert text(page, "done-text").startswith("0 of ")
    assert not page.find_element(By.ID, "undo").is_enabled()
    press(page, "j", "n", "k", "k", "y")  # row 1 comes up by the answer about row 0, has one itself
    press(page, "u")
    assert text(page, "card-row").startswith(f"Row {rows[0]}")
    press(page, "s")
    assert text(page, "done-text").startswith("1 of ")
    press(page, "k")
    assert text(page, "card-decision") == "Skipped"


def test_keys_move_and_can_be_turned_off(page):
    rows = cells(page, "row")
    press(page, "j", "j", "k")
    assert text(page, "card-row").startswith(f"Row {rows[1]}")
    click(page, "previous")
    assert text(page, "card-row").startswith(f"Row {rows[0]}")
    page.find_element(By.ID, "find").send_keys("yj")  # is typed, not decided
    assert text(page, "done-text").startswith("0 of ")
    click(page, "keys")
    press(page, "y")
    assert text(page, "done-text").startswith("0 of ")


def test_filters_choose_what_is_reviewed(page):
    labels, owners = cells(page, "label"), cells(page, "owner")
    Select(page.find_element(By.ID, "pick-owner")).select_by_visible_text("plot 1")
    assert len(cells(page, "row")) == owners.count("plot 1")
    Select(page.find_element(By.ID, "pick-owner")).select_by_visible_text("all")
    Select(page.find_element(By.ID, "pick-label")).select_by_visible_text("ash")
    rows = cells(page, "row")
    assert len(rows) == labels.count("ash")
    assert text(page, "card-row").startswith(f"Row {rows[0]}")
    press(page, "y")
    assert text(page, "card-row").startswith(f"Row {rows[1]}")
    Select(page.find_element(By.ID, "pick-decision")).select_by_visible_text("open")
    assert cells(page, "row") == rows[1:]
    Select(page.find_element(By.ID, "pick-decision")).select_by_visible_text("decided")
    assert cells(page, "row") == rows[:1]
    press(page, "s")  # what is skipped stays open
    Select(page.find_element(By.ID, "pick-decision")).select_by_visible_text("open")
    assert cells(page, "row") == rows


def test_a_click_on_a_row_puts_it_under_review(page):
    rows = page.find_elements(By.CSS_SELECTOR, "#worst tbody tr")
    rows[2].click()
    number = rows[2].find_element(By.TAG_NAME, "th").text
    assert text(page, "card-row").startswith(f"Row {number}")
    assert rows[2].get_attribute("aria-current") == "true"


def test_saved_decisions_are_taken_up_elsewhere_and_those_of_another_table_are_not(page, folder):
    press(page, "y", "n")
    click(page, "save")
    saved = downloaded(folder / "decisions.csv")
    page.execute_script("localStorage.clear()")
    page.refresh()
    assert text(page, "done-text").startswith("0 of ")
    (folder / "mine.csv").write_text(saved, newline="")
    page.find_element(By.ID, "load").send_keys(str(folder / "mine.csv"))
    assert text(page, "done-text").startswith("2 of ")
    assert save(page, folder) == list(csv.DictReader(saved.splitlines()))
    digest = next(csv.DictReader(saved.splitlines()))["input_digest"]
    (folder / "other.csv").write_text(saved.replace(digest, "0" * 64), newline="")
    page.find_element(By.ID, "load").send_keys(str(folder / "other.csv"))
    assert "about another table" in text(page, "kept")


def test_the_page_says_how_decisions_are_applied(page, folder):
    said = page.find_element(By.ID, "review").text
    assert "--decisions decisions.csv --label kind --id name --out clean.csv" in said
    assert page.get_log("browser") == []
