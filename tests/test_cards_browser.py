"""The cards of a review in a real browser: texts, numbers, paper, and no mouse."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from browsers import needed, visit

from thresher.runs.memory_run import value_files
from thresher.runs.settings import Settings

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = needed
SWAPPED = 3  # rows of each table whose labels are wrong


class SentenceTransformer:
    """Counts two letters, and tells texts apart."""

    def __init__(self, model):
        self.model = model

    def encode(self, texts, show_progress_bar):
        return np.array(
            [[text.count("e"), text.count("o"), sum(map(ord, text)) % 97 / 97] for text in texts]
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports on a table of texts, and on one of numbers."""
    folder = tmp_path_factory.mktemp("cards")
    with pytest.MonkeyPatch.context() as patch:
        module = SimpleNamespace(SentenceTransformer=SentenceTransformer)
        patch.setitem(sys.modules, "sentence_transformers", module)
        report(folder, "texts", texts(), text="message", label="kind", method="tknn")
    report(folder, "numbers", numbers(), label="price", task="regression", trees=20)
    return folder


def report(folder, name, lines, **how):
    path = folder / f"{name}.csv"
    path.write_text("\n".join(lines) + "\n")
    value_files(Settings(str(path), **how)).report(folder / f"{name}.html")


def texts():
    lines = ["message,kind"]
    for i in range(60):
        words = "see the tree" + "e" * (i % 5) if i % 2 else "look <b>now</b>" + "o" * (i % 5)
        label = ["round", "sharp"][(i % 2) ^ (i < SWAPPED)]
        lines.append(f'"{words}\n""quoted"", line two of {i}",{label}')
    return lines


def numbers():
    random = np.random.default_rng(1)
    lines = ["size,price"]
    for i, size in enumerate(random.random(120)):
        lines.append(
            f"{size:.4f},{1000 * size * (100 if i < SWAPPED else 1) + random.random():.2f}"
        )
    return lines


def card(browser, folder, name, row):
    """The page with a row under review."""
    page = visit(browser, (folder / f"{name}.html").as_uri())
    page.execute_script("localStorage.clear()")
    page.refresh()
    lines = page.find_elements(By.CSS_SELECTOR, "#worst tbody tr")
    next(x for x in lines if x.find_element(By.TAG_NAME, "th").text == str(row)).click()
    return page


def text(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector).text


def test_a_text_is_shown_as_it_is_beside_those_that_speak_against_its_label(browser, folder):
    page = card(browser, folder, "texts", 0)
    assert text(page, "#why blockquote") == 'look <b>now</b>\n"quoted", line two of 0'
    assert "Most like it, with another label" in text(page, "#why")
    assert "What it would be worth under each label" in text(page, "#why")
    assert page.get_log("browser") == []


def test_the_card_of_a_number_names_the_rows_that_expect_another_one(browser, folder):
    page = card(browser, folder, "numbers", 0)
    assert "The rows like it (about " in text(page, "#why")
    named = [each.text for each in page.find_elements(By.CSS_SELECTOR, "#why li")]
    assert len(named) == 7
    assert all(line.startswith("row ") and ": " in line for line in named)
    assert "2.5e" not in " ".join(named)


def test_a_row_to_drop_is_asked_about_as_such(browser, folder):
    document = (folder / "numbers.html").read_text()
    for word, other in (("drop", "correct"), ("correct", "drop")):
        told = document.replace(f'"suggestion": "{other}"', f'"suggestion": "{word}"')
        (folder / f"{word}.html").write_text(told)
    page = card(browser, folder, "drop", 0)
    assert " No other number fits either: drop the row? " in text(page, ".question")
    assert text(page, "#yes").startswith("Yes, drop it")
    page = card(browser, folder, "correct", 0)
    assert " Is it " in text(page, ".question")
    assert text(page, "#yes").startswith("Yes, it is ")


def test_paper_has_the_cards_of_the_first_ten_rows(browser, folder):
    page = card(browser, folder, "texts", 0)
    shown = len(page.find_elements(By.CSS_SELECTOR, "#worst tbody tr"))
    assert page.find_elements(By.CSS_SELECTOR, ".printed") == []
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    cards = page.find_elements(By.CSS_SELECTOR, ".printed")
    assert len(cards) == min(10, shown)
    first = cards[0].get_attribute("textContent")
    assert first.startswith(f"Row {text(page, '#worst tbody th')}: ")
    assert "line two of" in first
    page.execute_script("dispatchEvent(new Event('afterprint'))")
    assert page.find_elements(By.CSS_SELECTOR, ".printed") == []


def test_a_review_needs_no_mouse(browser, folder):
    page = card(browser, folder, "texts", 0)
    page.find_element(By.CSS_SELECTOR, "#worst tbody tr").click()
    page.execute_script("document.querySelector('.begin').focus()")
    seen = []
    while len(seen) < 40 and "keys" not in seen:
        ActionChains(page).send_keys(Keys.TAB).perform()
        seen.append(page.switch_to.active_element.get_attribute("id"))
    order = ["previous", "next", "yes", "no", "other", "drop", "skip", "load", "keys"]
    assert [name for name in seen if name in order] == order
    page.execute_script("document.getElementById('no').focus()")
    before = text(page, "#card-row")
    page.switch_to.active_element.send_keys(Keys.ENTER)
    after = text(page, "#card-row")
    assert after != before
    assert page.switch_to.active_element.get_attribute("id") == "no"
    said = page.find_element(By.ID, "announce").get_attribute("textContent")
    assert said.startswith(f"{after}, labeled ")
    assert text(page, "#done-text").startswith("1 of ")
