"""`thresher release --statements`: what owners are paid by a private release."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.cli.words import say
from thresher.errors import InputError, message_of


@dataclass(frozen=True)
class PrivatePay:
    """The options about what owners are paid; see `private_payout`."""

    statements: Path | None
    pot: int | None
    pay: str
    basis: str
    players: str
    within: float | None

    def check(self, owner: str | None, mechanism: str, *, plain: bool) -> None:
        """Refuse what cannot be paid, before anything is charged.

        A `plain` release counts classes within a radius, all near points alike.
        """
        from thresher.payouts.shares import check_cents

        if (self.statements is None) != (self.pot is None):
            raise InputError("--statements and --pot-cents go together; nothing was charged")
        if self.statements is None:
            self._check_unused()
            return
        if owner is None or mechanism != "table":
            raise InputError(
                "--statements needs --owner and --mechanism table; nothing was charged"
            )
        if self.players == "owners" and not plain:
            raise InputError(
                "--players owners cannot be used with --kernel, --trees or --task regression: use "
                "--players points; nothing was charged"
            )
        try:
            check_cents("pot", self.pot)
        except InputError as refused:
            raise InputError(f"{message_of(refused)}; nothing was charged") from None
        if self.statements.exists():
            raise InputError(
                f"{self.statements} already exists: choose a new folder for --statements; nothing "
                "was charged"
            )

    def _check_unused(self) -> None:
        usual = {"pay": "estimate", "basis": "gains", "players": "points", "within": None}
        for name, value in usual.items():
            if getattr(self, name) != value:
                raise InputError(
                    f"--{name} needs --statements, the folder for what owners are paid; nothing "
                    "was charged"
                )

    def write(self, release: Any) -> None:
        """Write the statements of a release, and print what the public may know about them."""
        if self.statements is None:
            return
        from thresher.payouts.private import private_payout
        from thresher.payouts.private_statements import rows_in_common, write_statements

        try:
            paid = private_payout(
                release, pot=int(self.pot or 0), pay=self.pay, basis=self.basis,
                players=self.players,
            )  # fmt: skip
        except InputError as refused:
            raise InputError(
                f"{message_of(refused)}; the release was written, but no statements: the ledger "
                "keeps the answer, and asking again costs nothing"
            ) from None
        shared = () if self.within is None else rows_in_common(release, self.within)
        folder = write_statements(paid, self.statements, shared)
        say(
            f"{paid.rate:.6g} cents per unit of value; expected overshoot {paid.overshoot:.0f} "
            f"cents, ceiling {paid.ceiling:.0f} of a pot of {paid.pot}"
        )
        say(f"wrote {folder}: public.json for everybody, owners/*.json for one owner each")
        say("operator.json and operator.html are for you alone: the reserve and all pay are exact")
