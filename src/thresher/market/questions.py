"""A task's question: its validation set, and how owners' rows become numbers in its space.

Everything here follows from public facts. Rows are read one file at a time, and only the owner who
submitted them learns what is wrong with them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import InputError
from thresher.inputs.checked_inputs import Validation, check_validation
from thresher.inputs.time_labels import arrow_entries
from thresher.market import client
from thresher.market.refusals import unusable
from thresher.market.terms import Terms
from thresher.neighbors.forests import Forest
from thresher.privacy.leaf_setting import public_forest
from thresher.privacy.private_points import read_points
from thresher.radius import suggest_radius
from thresher.runs.public_encoding import PublicEncoding
from thresher.tables.labeled import read_labeled, read_private

KINDS = {media_type: suffix.removeprefix(".") for suffix, media_type in client.KINDS.items()}
TOLD = 5  # bad rows that a message names
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one owner in the space of the task: features and labels."""

    X: Floats
    y: tuple[Any, ...]

    def pack(self) -> bytes:
        """The rows as bytes for the database."""
        stream = io.BytesIO()
        np.save(stream, self.X, allow_pickle=False)
        return stream.getvalue() + json.dumps(self.y).encode()

    @classmethod
    def unpack(cls, content: bytes) -> Rows:
        """The rows in the bytes that `pack` made."""
        stream = io.BytesIO(content)
        X = np.load(stream, allow_pickle=False)
        return cls(X, tuple(json.loads(stream.read())))

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All rows of these parts, in order."""
        labels = (label for part in parts for label in part.y)
        return cls(np.concatenate([part.X for part in parts]), tuple(labels))


@dataclass(frozen=True, eq=False)
class Question:
    """A validation set as numbers, with the terms of its task."""

    terms: Terms
    columns: tuple[str, ...]
    encoding: PublicEncoding
    y_val: Sequence[Any]

    @classmethod
    def read(cls, terms: Terms, content: bytes, kind: str) -> Question:
        """Read the question from a file; raise if it cannot be used."""
        with TemporaryDirectory() as folder:
            path = _written(folder, content, kind)
            try:
                X, y = read_labeled(path, terms.label)
                y = texts(y)
                encoding = terms.preparation.fit(path, terms.label, (), None)
                found = cls(terms, tuple(X.column_names), encoding, y)
                found.validation  # noqa: B018 - refuses what is wrong
                _, _, said = found._as_rows(path)
            except InputError as wrong:
                message = str(wrong).replace(str(path), "its file")
                raise unusable(f"the validation set cannot be used: {message}") from None
        if said:
            raise unusable(
                f"an owner could not submit rows like those of the validation set: {said}"
            )
        return found

    def _as_rows(self, path: Path) -> tuple[Floats, list[str | None], str]:
        """Read a file as if an owner submitted it: features, labels, what is wrong with rows."""
        table = read_private(path, self.terms.label, numbered=True)
        scaled = self.encoding.private(path, self._columns_of(table.X))
        labels = texts(arrow_entries(table.y))
        points = read_points(scaled, labels, self.validation)
        word, bad = table.unusable(points.unusable())
        return scaled, labels, _bad_rows(word, bad) if bad else ""

    @property
    def X_val(self) -> Floats:  # noqa: N802 - as everywhere
        """The validation set as numbers."""
        return self.encoding.rows

    @property
    def encoded_by(self) -> dict[str, Any]:
        """How raw rows become numbers, for a price list."""
        record = self.encoding.record
        return record | {"fitted_on": record["fitted_on"] | {"source": "the validation set"}}

    @cached_property
    def radius(self) -> float:
        """The radius of the terms, or the one suggested."""
        terms = self.terms
        if terms.radius is not None:
            return terms.radius
        return float(suggest_radius(self.X_val, self.y_val, metric=terms.metric, **terms.weighting))

    @cached_property
    def forest(self) -> Forest | None:
        """If near means by leaf, the trees of the terms, or those grown on the validation set."""
        terms = self.terms
        if terms.forest is not None:
            return Forest.read(terms.forest)
        if terms.trees is None:
            return None
        return public_forest(self.X_val, self.y_val, trees=terms.trees, leaves=terms.leaves)

    @property
    def settled_terms(self) -> Terms:
        """The terms with what follows from the validation set: the radius, or the forest."""
        if self.forest is None:
            return replace(self.terms, radius=self.radius)
        return replace(self.terms, forest=self.forest.document())

    @property
    def game(self) -> dict[str, Any]:
        """The arguments of a release or plan, apart from the validation set."""
        terms = self.terms
        near: dict[str, Any] = {"forest": self.forest}
        if self.forest is None:
            near = {"radius": self.radius, "metric": terms.metric, **terms.weighting}
        return {
            "epsilon": terms.epsilon, "delta": terms.delta, "classes": terms.classes,
            "points_per_owner": terms.rows_per_owner, **near,
        }  # fmt: skip

    @property
    def promised(self) -> dict[str, Any]:
        """What the record of the task's release has to say."""
        terms = self.terms
        near: dict[str, Any] = {"radius": terms.radius, "metric": terms.metric}
        if self.forest is not None:
            near = {"forest_digest": self.forest.digest()}
        return {
            "epsilon": terms.epsilon, "delta": terms.delta, "kernel": terms.kernel,
            "points_per_owner": terms.rows_per_owner, **near,
        }  # fmt: skip

    @cached_property
    def validation(self) -> Validation:
        """The validation set, checked."""
        return check_validation(
            self.X_val, self.y_val, metric=self.terms.metric, classes=self.terms.classes,
            public=True,
        )  # fmt: skip

    def rows(self, content: bytes, kind: str) -> Rows:
        """Read the rows that an owner submits; if one row is bad, all are refused."""
        with TemporaryDirectory() as folder:
            path = _written(folder, content, kind)
            try:
                scaled, labels, said = self._as_rows(path)
            except InputError as wrong:
                raise unusable(str(wrong).replace(str(path), "the file")) from None
        if said:
            raise unusable(f"no row was accepted, because {said}")
        if not len(scaled):
            raise unusable("the file has no rows")
        if len(scaled) > self.terms.most_rows:
            most = self.terms.most_rows
            raise unusable(f"the file has {len(scaled)} rows, but an owner may submit only {most}")
        return Rows(scaled, tuple(labels))

    def _columns_of(self, table: Any) -> Any:
        """The features of a table of rows, in the order of the validation set."""
        there = set(table.column_names)
        missing = [name for name in self.columns if name not in there]
        more = [name for name in table.column_names if name not in set(self.columns)]
        for what, names in (("does not have", missing), ("must not have", more)):
            if names:
                raise InputError(
                    f"the file {what} the columns {', '.join(map(repr, names[:TOLD]))}"
                )
        return table.select([*self.columns])


def texts(labels: Any) -> list[str | None]:
    """Labels as text, for any kind of file they come from.

    Examples
    --------
    >>> texts([1, 2.0, True, None, "cat"])
    ['1', '2', 'True', None, 'cat']
    """
    return [None if label is None else _text(label) for label in labels]


def _text(label: Any) -> str:
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)


def _written(folder: str, content: bytes, kind: str) -> Path:
    """Write the content to a file of a kind that the library reads."""
    if kind not in KINDS.values():
        raise unusable(f"the file must be {' or '.join(KINDS.values())}, got {kind}")
    path = Path(folder, f"rows.{kind}")
    if kind != "json":
        path.write_bytes(content)
        return path
    import pyarrow as pa
    from pyarrow import feather

    try:
        rows = json.loads(content)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise unusable("JSON must be a list of objects, one for each row")
        names = dict.fromkeys(name for row in rows for name in row)
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
    except (pa.ArrowException, OverflowError, RecursionError, TypeError, ValueError):
        raise unusable(
            "JSON must be a list of objects, one for each row, and each column must hold numbers "
            "or texts"
        ) from None
    path = path.with_suffix(".arrow")
    feather.write_feather(table, str(path))
    return path


def _bad_rows(word: str, bad: dict[int, str]) -> str:
    """A message for the owner about the first bad rows."""
    first = "; ".join(f"{word} {number}: {why}" for number, why in list(bad.items())[:TOLD])
    more = "" if len(bad) <= TOLD else f"; and {len(bad) - TOLD} more"
    return f"{len(bad)} cannot be used ({first}{more})"
