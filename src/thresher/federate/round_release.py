"""The result of a round: the noisy sum as a `Release`, just like a central release."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.array_types import Array, Integers
from thresher.counts import NeighborCounts
from thresher.federate.signed_task import Task
from thresher.price_list import PriceList
from thresher.privacy.contributions import Contributions
from thresher.privacy.dp_tknn import table_digest
from thresher.privacy.names import read_owners
from thresher.privacy.private_points import PrivatePoints
from thresher.privacy.release import Release
from thresher.privacy.release_setting import read_contributions


@dataclass(frozen=True)
class Holding:
    """The points of one silo, as a private task counts them; the coordinator has no points."""

    private: PrivatePoints
    contributions: Contributions
    owners: tuple[Hashable, ...] | None

    @classmethod
    def of(cls, task: Task, X: Any, y: Any, owners: Any = None) -> Holding:
        """Read points; raise only for wrong shapes and types."""
        known, silo = read_owners(owners), task.terms["unit"] == "silo"
        setting = task.design.setting
        return cls(*read_contributions(setting, X, y, known, together=silo), known)

    @classmethod
    def none(cls, task: Task) -> Holding:
        """The coordinator's points: none."""
        validation = task.design.setting.validation
        rows = validation.rows
        assert rows is not None  # noqa: S101 - tasks have features
        labels = np.array(list(validation.classes.labels), object)[:0]
        return cls.of(task, np.zeros((0, rows.width)), labels.tolist())

    def table(self, task: Task) -> Integers:
        """What this silo adds to the sum, before noise."""
        return task.design.footprint(self.contributions)


def exact_table(task: Task, X: Any, y: Any) -> Array:
    """What a silo adds to a sum without noise."""
    return NeighborCounts.over(task.side).add(X, y).table


def exact_prices(task: Task, words: Integers) -> PriceList:
    """The prices of a sum without noise."""
    side = task.side
    return PriceList.over(
        side, words.reshape(side.shape).astype(side.dtype), task.terms["semivalue"]
    )


def outcome(
    task: Task, words: Integers, survivors: Sequence[int], round: bytes, holding: Holding,  # noqa: A002
    *, ledger: dict[str, Any] | None = None,
) -> Release:  # fmt: skip
    """The release of a round."""
    table = np.array(words).reshape(task.side.shape)
    design = replace(task.design, excess=task.excess(len(survivors)))
    names = task.protocol.names
    record = task.record(design) | {
        "federated": True,
        "round": round.hex(),
        "silos": len(names),
        "survivors": [names[each] for each in survivors],
        "fewest": task.terms["fewest"],
        "colluding": task.terms["colluding"],
        "noise_excess": design.excess,
        "sigma_counted": design.sigma / design.scale,
        "epsilon_two_silos": task.epsilon_two_silos,
        "ledger": ledger,
        "table_digest": table_digest(table),
        "published": "prices",
    }
    return Release(design, table, record, holding.private, holding.contributions, holding.owners)
