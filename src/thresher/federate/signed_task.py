"""A task: what is counted, by whom, and with what budget. It is signed and has a digest.

All parties hold the same terms, and their digest goes into every message. Before a silo takes part,
its owner compares the digest with the other silos over another channel. Otherwise a dishonest
coordinator could show each silo a roster of strangers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from thresher.counts import NeighborCounts
from thresher.errors import InputError, option
from thresher.federate import primitives
from thresher.federate.keys import Key, check_public
from thresher.federate.noise_shares import check_draws, check_total, noise_excess, share_sigma
from thresher.federate.round_terms import Terms, party_terms, terms_digest
from thresher.files import reading, write_text
from thresher.games.semivalues import check_semivalue, semivalue_name
from thresher.inputs.arrays import pack_array, unpack_array
from thresher.inputs.checks import check_choice, check_count
from thresher.neighbors.forests import Forest
from thresher.neighbors.kernel import BOX
from thresher.privacy.accountants import (
    Adjacency,
    Budget,
    Unit,
    check_adjacency,
    discrete_mu,
    gaussian_epsilon,
)
from thresher.privacy.design import Change, check_points_per_owner
from thresher.privacy.dp_tknn import release_record
from thresher.privacy.plan import Plan, plan_design
from thresher.privacy.release_setting import RINGS, side_setting
from thresher.privacy.table_design import TableDesign
from thresher.privacy.table_mechanism import Table
from thresher.sides.protocol import PublicSide
from thresher.sides.stored import stored_side

FORMAT = "thresher.task/1"
FederatedUnit = Literal["point", "owner", "silo"]
NOISY, EXACT = "noisy counts", "exact counts"


@dataclass(frozen=True, eq=False)
class Task:
    """The terms of a federated release; made by `Task.create` and signed by the coordinator.

    Attributes
    ----------
    terms
        Everything that the digest covers, as JSON: budget, bound, radius, roster and the digest of
        the validation set.
    side
        The public side: the validation set, and what near means.
    signature
        The coordinator's signature.

    Examples
    --------
    >>> from thresher.federate import Key, Task
    >>> coordinator, north, south = Key.create(), Key.create(), Key.create()
    >>> silos = {"north": north.public, "south": south.public}
    >>> Task.create(
    ...     [[1.0, 0.0], [0.0, 1.0]], ["yes", "no"], silos=silos, key=coordinator,
    ...     epsilon=1, delta=1e-6, fewest=2,
    ... )
    Task(2 silos, 2 must survive, 1 may collude, epsilon=1, delta=1e-06, protects each point)
    """

    terms: Mapping[str, Any]
    side: PublicSide
    signature: bytes

    @classmethod
    def create(
        cls, X_val: Any, y_val: Any, *, silos: Mapping[str, str], key: Key, epsilon: float,
        delta: float, fewest: int, colluding: int = 1, radius: float = 0.5,
        metric: str = "cosine", classes: Any = None, unit: FederatedUnit = "point",
        bound: int | Literal["usual", "certified"] = "usual", adjacency: str = "add-remove",
        semivalue: Any = "shapley", points_per_owner: int | None = None, name: str = "",
        kernel: Any = BOX, rings: int = RINGS, forest: Forest | None = None,
    ) -> Task:  # fmt: skip
        """Create a task for a private release.

        Parameters
        ----------
        X_val, y_val, radius, metric, classes, epsilon, delta, adjacency, semivalue, kernel, rings
            As in `dp_tknn_shapley`; all of them are public.
        silos
            The public key of each silo, by its name.
        key
            The coordinator's key.
        fewest
            k: how many of the n silos must stay until the end. If fewer do, the round fails, and
            nobody learns a sum. It must be above t, with 2 k > n + t.
        colluding
            t: how many silos may collude with the coordinator. It is at least 1, because a silo
            that sees the result knows its own share of the noise.
        unit
            What is protected: a "point", an "owner" with all points in one silo (silos then name
            owners), or a "silo" as a whole.
        bound
            The bound B, as in `thresher.privacy.Table`.
        points_per_owner
            About how many points an owner, or a silo, has: a public number, or a guess.
        name
            A description in words.
        forest
            Trees that were grown from public rows, such as the validation set
            (`th.grow_forest(X_val, y_val)`). Near then means in the same leaf, and radius, metric
            and kernel are not used. Each leaf has its own noise, so trees should have few leaves.

        Examples
        --------
        >>> import numpy as np
        >>> from thresher.federate import Key, Task
        >>> X_val = np.random.default_rng(0).normal(size=(100, 2))
        >>> keys = {name: Key.create() for name in ("north", "south", "west")}
        >>> task = Task.create(
        ...     X_val, X_val[:, 0] > 0, silos={name: key.public for name, key in keys.items()},
        ...     key=Key.create(), epsilon=1, delta=1e-6, fewest=3,
        ... )
        >>> task
        Task(3 silos, 3 must survive, 1 may collude, epsilon=1, delta=1e-06, protects each point)
        """
        known = check_choice(option("unit"), unit, get_args(FederatedUnit))
        counts = NeighborCounts(
            X_val, y_val, radius=radius, metric=metric, classes=classes, kernel=kernel, rings=rings,
            forest=forest,
        )  # fmt: skip
        per_owner = check_points_per_owner(points_per_owner, owners=known != "point")
        about = {"reveals": NOISY, "unit": known, "points_per_owner": per_owner}
        asked = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "bound": bound}
        design = _design(counts.side, about | asked | {"semivalue": semivalue})
        setting = design.setting
        budget = {
            "epsilon": setting.budget.epsilon,
            "delta": setting.budget.delta,
            "adjacency": setting.adjacency,
            "bound": design.bound,
            "scale": design.scale,
            "sigma": design.sigma,
        }
        parties = party_terms(silos, key.public, fewest, colluding, name)
        return cls._signed(parties | about | budget, setting.side, setting.semivalue, key)

    @classmethod
    def create_revealing_exact_counts(
        cls, counts: NeighborCounts, *, silos: Mapping[str, str], key: Key, fewest: int,
        colluding: int = 1, semivalue: Any = "shapley", name: str = "",
    ) -> Task:  # fmt: skip
        """Create a task without noise: everyone learns the exact sums of all silos' counts.

        Nobody sees the counts of a single silo, but nothing protects a point, an owner or a silo:
        anyone who knows all points except one learns that one. `counts` are `NeighborCounts`
        without points. They hold the validation set and say what near means: a radius, a kernel,
        leaves of a forest, or targets within a radius. The other parameters are as in `create`.
        """
        if not isinstance(counts, NeighborCounts) or len(counts):
            raise InputError(f"counts must be NeighborCounts without points, got {counts!r}")
        parties = party_terms(silos, key.public, fewest, colluding, name)
        about = {"reveals": EXACT, "unit": "none"}
        return cls._signed(parties | about, counts.side, semivalue, key)

    @classmethod
    def _signed(cls, terms: dict[str, Any], side: PublicSide, semivalue: Any, key: Key) -> Task:
        known = semivalue_name(check_semivalue(semivalue))
        public = {
            "side": side.kind, "public": json.loads(json.dumps(side.describe())),
            "public_digest": _side_digest(side),
        }  # fmt: skip
        whole = {"format": FORMAT, **terms, **public, "semivalue": known}
        task = cls(whole, side, primitives.sign(key.secret, b"task" + terms_digest(whole)))
        task.check()
        return task

    def __repr__(self) -> str:
        terms = self.terms
        who = f"{len(terms['silos'])} silos, {terms['fewest']} must survive"
        budget = "reveals exact counts"
        if self.is_private:
            budget = f"epsilon={terms['epsilon']:g}, delta={terms['delta']:g}"
            budget += f", protects each {terms['unit']}"
        return f"Task({who}, {terms['colluding']} may collude, {budget})"

    @property
    def digest(self) -> str:
        """A hash that identifies the task, to compare with the other silos over another channel."""
        return terms_digest(self.terms).hex()

    @property
    def is_private(self) -> bool:
        """Whether the sum has noise."""
        return self.terms["reveals"] == NOISY

    @property
    def columns(self) -> Sequence[str] | None:
        """The names of the features, if they have any."""
        public = self.terms["public"]
        return public["forest"]["columns"]["names"] if "forest" in public else public["columns"]

    @cached_property
    def protocol(self) -> Terms:
        """The facts that the protocol needs."""
        terms = self.terms
        names = tuple(sorted(terms["silos"]))  # silos are numbered in this order
        return Terms(
            terms_digest(terms),
            check_public("coordinator", terms["coordinator"]),
            names,
            tuple(check_public(f"the key of {name}", terms["silos"][name]) for name in names),
            terms["fewest"],
            terms["colluding"],
            math.prod(self.side.shape),
        )

    @cached_property
    def design(self) -> TableDesign:
        """The table mechanism as planned, with the noise of all silos."""
        excess = self.excess(len(self.terms["silos"]))
        return replace(_design(self.side, self.terms), excess=excess)

    def excess(self, survivors: int) -> float:
        """The variance of the noise of this many silos, divided by what the guarantee needs."""
        return noise_excess(survivors, self.terms["fewest"], self.terms["colluding"])

    @property
    def share_sigma(self) -> float:
        """The sigma of each silo's share of the noise, on the scaled table."""
        return share_sigma(self.design.sigma, self.terms["fewest"], self.terms["colluding"])

    @property
    def epsilon_two_silos(self) -> float:
        """The epsilon of a unit whose points are in two silos, as it moves the sum twice as far.

        If the task protects silos, the unit is an owner in them.
        """
        design, silos = self.design, self.terms["unit"] == "silo"
        length = design.length(self.terms["adjacency"], "part" if silos else None)
        return gaussian_epsilon(discrete_mu(2 * length, design.sigma), self.terms["delta"])

    def changed_by(self, unit: Unit) -> Change:
        """What changes of a protected unit if one `unit` of a ledger does.

        Several points of a silo may belong to one owner.
        """
        return "part" if (self.terms["unit"], unit) == ("silo", "owner") else unit

    def record(self, design: TableDesign) -> dict[str, Any]:
        """What a release says of the task and of its `design`, all of it public."""
        record = release_record(design, "", seeded=False) | {"task_digest": self.digest}
        record["unit"] = self.terms["unit"]
        if self.terms["unit"] == "silo":
            for adjacency in get_args(Adjacency):
                name = f"epsilon_{adjacency.replace('-', '_')}_owner"
                record[name] = design.epsilon(adjacency, "part")
        return record

    def plan(self, points: int) -> Plan:
        """What to expect from this many points in all, with the noise of all silos."""
        if not self.is_private:
            raise InputError("a plan needs noise: this task reveals exact counts")
        return plan_design(self.design, check_count("points", points))

    def check(self) -> None:
        """Raise unless the terms are safe, fit the validation set and are signed."""
        terms, protocol = self.terms, self.protocol
        if terms.get("format") != FORMAT or terms["reveals"] not in {NOISY, EXACT}:
            raise InputError(f"the task does not have the format {FORMAT}")
        if _side_digest(self.side) != terms["public_digest"]:
            raise InputError("the validation set is not the one that the task names")
        content = b"task" + protocol.task
        if not primitives.is_signed(protocol.coordinator, self.signature, content):
            raise InputError("the task was not signed by its coordinator, or was changed since")
        if self.is_private:
            self._check_noise()

    def _check_noise(self) -> None:
        design, terms = self.design, self.terms
        same = math.isclose(design.sigma, terms["sigma"], rel_tol=1e-9)
        if not same or design.scale != terms["scale"]:
            raise InputError("the task does not have the noise that its budget needs")
        check_total(design.sigma, design.excess)
        check_draws(terms["epsilon"], terms["delta"])
        self.share_sigma  # noqa: B018 - refuses shares that are too small

    def document(self) -> dict[str, Any]:
        """The task as a document for JSON."""
        arrays = self.side.arrays()
        if "features" not in arrays:
            raise InputError("a task needs the features of the validation set")
        packed = {name: pack_array(array, deflate=True) for name, array in arrays.items()}
        return {"terms": self.terms, "signature": self.signature.hex(), "validation": packed}

    @classmethod
    def read(cls, document: Any) -> Task:
        """Read a task from a document, and check it."""
        try:
            terms = document["terms"]
            arrays = {name: unpack_array(each) for name, each in document["validation"].items()}
            side = stored_side(terms["side"], terms["public"], arrays)
            task = cls(terms, side, bytes.fromhex(document["signature"]))
            task.check()
        except (KeyError, TypeError, ValueError, AttributeError) as broken:
            raise InputError(f"this is not a task in the format {FORMAT}: {broken}") from None
        return task

    def save(self, path: str | Path) -> None:
        """Write the task to a file; an existing file is replaced."""
        write_text(path, json.dumps(self.document()))

    @classmethod
    def load(cls, path: str | Path) -> Task:
        """Load a task from a file that `save` wrote."""
        with reading(path, "task") as found:
            return cls.read(json.loads(found.read_text(encoding="utf-8")))


def _design(side: PublicSide, terms: Mapping[str, Any]) -> TableDesign:
    """The table mechanism by public terms, which treat a protected silo as an owner."""
    setting = side_setting(
        side, budget=Budget(terms["epsilon"], terms["delta"]),
        adjacency=check_adjacency(terms["adjacency"]),
        unit="point" if terms["unit"] == "point" else "owner",
        semivalue=check_semivalue(terms["semivalue"]), points_per_owner=terms["points_per_owner"],
    )  # fmt: skip
    return Table(bound=terms["bound"], weights=0).design(setting)


def _side_digest(side: PublicSide) -> str:
    """A SHA-256 of all arrays of a public side, with their names."""
    parts = []
    for name, array in sorted(side.arrays().items()):
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        about = f"{name} {plain.dtype.str} {plain.shape}".encode()
        parts += [about, plain.tobytes()]
    return primitives.digest("public side", *parts).hex()
