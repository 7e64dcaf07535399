"""A whole story in a real browser, from an empty folder to a paid statement."""

from __future__ import annotations

import json
import time

import pytest
from browsers import downloaded, needed, resize, show, visit
from market_cases import made_up
from market_faults import free_port

from thresher.cli.serve import running
from thresher.market.export import verify
from thresher.market.market import Market

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
faults = pytest.importorskip("test_accessibility").faults
pytestmark = needed
OWNERS = {"Hospital North": made_up(30, 11), "Hospital South": made_up(30, 12)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    (folder / "validation.csv").write_bytes(made_up(60, 1))
    for name, rows in OWNERS.items():
        (folder / f"{name}.csv").write_bytes(rows)
    return folder


class Tab:
    """A browser on a market, and what a person does there."""

    def __init__(self, browser, url):
        self.browser, self.url = browser, url

    def open(self, path):
        visit(self.browser, self.url + path)

    def log_in(self, token):
        """By keyboard alone."""
        self.browser.delete_all_cookies()
        self.open("/")
        self.write(token=token + "\n")
        self.wait_for("Log out")

    def write(self, **fields):
        from selenium.webdriver.common.by import By

        for name, text in fields.items():
            field = self.browser.find_element(By.ID, name)
            if field.get_attribute("type") not in {"file", "select-one"}:
                field.clear()
            field.send_keys(text)

    def press(self, text):
        from selenium.webdriver.common.by import By

        path = f"//main//button[normalize-space()='{text}'] | //a[normalize-space()='{text}']"
        self.browser.execute_script("window.before = true")
        self.browser.find_element(By.XPATH, path).click()
        there = "return !window.before && document.readyState === 'complete'"
        end = time.monotonic() + 60
        while not self.browser.execute_script(there):
            assert time.monotonic() < end, self.text
            time.sleep(0.05)

    def wait_for(self, *texts):
        """Load the page again until it says one of the texts."""
        end = time.monotonic() + 120
        while not any(text in self.browser.page_source for text in texts):
            assert time.monotonic() < end, self.text
            time.sleep(0.3)
            self.browser.refresh()

    @property
    def text(self):
        return self.browser.find_element("tag name", "body").text

    @property
    def secret(self):
        return self.browser.find_element("id", "secret").text


def add_member(tab, role, name):
    tab.open("/members")
    tab.write(role=role, name=name)
    tab.press("Add")
    return tab.secret


def publish(tab, folder):
    """The buyer's part: a draft, what to expect of it, and two invitations."""
    tab.press("New task")
    tab.write(
        title="Sick or well?", label="diagnosis", pot="500", owners="2", rows_per_owner="30",
        epsilon="90", trees="4", validation=str(folder / "validation.csv"),
    )  # fmt: skip
    tab.press("Make the draft")
    assert "What to expect" in tab.text
    assert "in the same leaf of 4 trees" in tab.text
    task = tab.browser.current_url.removeprefix(tab.url)
    tab.press("Publish")
    codes = []
    for _ in OWNERS:
        tab.open(task)
        tab.press("Invite an owner")
        codes.append(tab.secret)
    return task, codes


def hand_in(tab, name, code, folder):
    """An owner's part: join, hand in, take back, hand in again; the token."""
    tab.browser.delete_all_cookies()
    tab.open("/")
    tab.write(code=code, name=name)
    tab.press("Join")
    token = tab.secret
    tab.press("Continue")
    for number in range(3):
        tab.write(rows=str(folder / f"{name}.csv"))
        if number == 2:
            tab.browser.find_element("css selector", "#replaces option:last-child").click()
        tab.press("Submit")
        receipt = json.loads(tab.secret)
        assert receipt["rows"] == 30
        tab.browser.find_element("link text", "Save it as a file").click()
        saved = downloaded(folder / f"receipt-{receipt['upload']}.json")
        assert json.loads(saved) == receipt
        tab.press("Continue")
    assert tab.text.count("withdrawn\n") + tab.text.count("withdrawn Receipt") == 1, "replaced"
    tab.press("Withdraw")
    assert tab.text.count("withdrawn\n") + tab.text.count("withdrawn Receipt") == 2
    return token


def test_from_an_empty_folder_to_a_paid_statement(browser, folder):
    Market.open(folder / "market", epsilon=100.0).close()
    with running(folder / "market", free_port()) as (url, operator):
        tab = Tab(browser, url)
        tab.log_in(operator)
        buyer, auditor = add_member(tab, "buyer", "Clinic"), add_member(tab, "auditor", "Auditor")
        tab.log_in(buyer)
        task, codes = publish(tab, folder)
        owners = [
            hand_in(tab, name, code, folder) for name, code in zip(OWNERS, codes, strict=True)
        ]
        tab.log_in(buyer)
        tab.open(task)
        tab.press("Close now")
        tab.wait_for("<strong>Paid</strong>", "<strong>Nobody", "<strong>Refused")
        assert "Your statement" not in tab.text
        assert "are paid between" in tab.text
        tab.press("See the prices, and how far off they are")
        assert "release" in tab.text.lower()
        look_at_payments(tab, task, operator)
        look_at_statement(tab, task, owners[0], folder)
        look_at_ledger(tab, auditor, folder)
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def look_at_statement(tab, task, token, folder):
    """The owner's end: the statement on a screen and on a phone, the own rows, and none left."""
    tab.log_in(token)
    tab.open(task)
    assert "Your statement" in tab.text
    assert float(tab.browser.find_element("class name", "amount").text.replace(",", "")) > 0
    for width, scheme in ((1280, "light"), (360, "dark")):
        resize(tab.browser, width, 800)
        show(tab.browser, scheme=scheme)
        assert faults(tab.browser) == []
        wide = "return document.documentElement.scrollWidth <= window.innerWidth"
        assert tab.browser.execute_script(wide)
    tab.open(task)
    link = tab.browser.find_element("link text", "Download")
    name = link.get_attribute("href").rsplit("/", 1)[1]
    link.click()
    assert downloaded(folder / f"rows-{name}.csv") == OWNERS["Hospital North"].decode()
    tab.press("Delete my rows from this market")
    assert "deleted" in tab.text
    assert "Your statement" in tab.text


def look_at_payments(tab, task, operator):
    tab.log_in(operator)
    tab.open(task)
    assert all(name in tab.text for name in ("Payments", "stay in the reserve", *OWNERS))
    assert faults(tab.browser) == []
    tab.open("/members")
    assert faults(tab.browser) == []


def look_at_ledger(tab, auditor, folder):
    tab.log_in(auditor)
    tab.press("Audit")
    assert faults(tab.browser) == []
    tab.browser.find_element("link text", "Download the public export").click()
    assert len(verify(json.loads(downloaded(folder / "market.json")))) == 2
