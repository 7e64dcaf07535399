"""A demonstration with made-up hospitals, played over HTTP on a running market."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from thresher.market.client import Client
from thresher.market.receipts import new_salt
from thresher.market.times import now

HOSPITALS, PATIENTS, CHECKED = 60, 10, 200
CARELESS = 6  # hospitals whose labels are drawn at random
COLUMNS = ("age", "pressure", "sugar", "diagnosis")


def play(url: str, operator: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Play the story; return the task and the tokens of all roles, two of owners."""
    boss = Client(url, operator)
    buyer_token = boss.add_member("buyer", "Clinic West")["token"]
    auditor_token = boss.add_member("auditor", "The auditor")["token"]
    buyer = Client(url, buyer_token)
    with tempfile.TemporaryDirectory() as folder:
        task = _publish(buyer, Path(folder, "validation.csv"))
        say(f"Clinic West published {CHECKED} checked patients and a pot of 10,000.00")
        tokens = [_hand_in(buyer, url, task, number, Path(folder)) for number in range(HOSPITALS)]
    say(f"{HOSPITALS} hospitals submitted {PATIENTS} patients each; {CARELESS} were careless")
    buyer.close(task)
    while buyer.task(task)["state"] == "closing":
        time.sleep(0.5)
    ended = buyer.task(task)
    say(f"the task is {ended['state']}{': ' + ended['reason'] if ended['reason'] else ''}")
    for name, token in (("careful", tokens[-1]), ("careless", tokens[0])):
        line = Client(url, token).statement(task)["line"]
        if line is not None:
            say(f"a {name} hospital is paid {line['cents'] / 100:,.2f}")
    return {
        "task": task, "operator": operator, "buyer": buyer_token, "auditor": auditor_token,
        "careful owner": tokens[-1], "careless owner": tokens[0],
    }  # fmt: skip


def _publish(buyer: Client, path: Path) -> str:
    path.write_text(_patients(CHECKED, 0))
    task = buyer.draft(
        "Sick or well?", path, opens=now(), closes=now() + timedelta(days=1), label="diagnosis",
        pot_cents=1_000_000, epsilon=8.0, delta=1e-6, rows_per_owner=PATIENTS, owners=HOSPITALS,
        radius=0.6,
    )["id"]  # fmt: skip
    buyer.publish(task)
    return str(task)


def _hand_in(buyer: Client, url: str, task: str, number: int, folder: Path) -> str:
    joined = Client(url).join(buyer.invite(task), f"Hospital {number + 1}")
    path = folder / f"{number}.csv"
    path.write_text(_patients(PATIENTS, number + 1, careless=number < CARELESS))
    Client(url, joined["token"]).upload(task, path, salt=new_salt())
    return str(joined["token"])


def _patients(count: int, seed: int, *, careless: bool = False) -> str:
    """Made-up patients as CSV."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    score = X @ [0.5, 1.0, 1.0] + 0.4 * rng.normal(size=count)
    sick = rng.random(count) < 0.5 if careless else score > 0
    rows = [
        f"{55 + 12 * age:.0f},{130 + 15 * pressure:.0f},{100 + 20 * sugar:.0f},{label}"
        for (age, pressure, sugar), label in zip(X, np.where(sick, "sick", "well"), strict=True)
    ]
    return "\n".join([",".join(COLUMNS), *rows]) + "\n"
