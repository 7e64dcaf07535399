"""Settings: everything a run of `thresher value` depends on, besides the files themselves."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from glob import escape
from typing import Any

import numpy as np

from thresher.embed import TEXT_MODEL
from thresher.errors import InputError, option
from thresher.games.semivalues import Calibrated, check_semivalue
from thresher.inputs.checks import (
    check_choice,
    check_count,
    check_metric,
    check_number,
    check_radius,
)
from thresher.neighbors.kernel import BOX, SHAPES, check_kernel
from thresher.passes.memory import check_memory
from thresher.tables.cell_format import CellFormat, named_formats
from thresher.tables.feature import check_streaming_fill
from thresher.tables.scaling import SCALINGS
from thresher.version import __version__

RETRAINING = ("leave-one-out", "data-shapley", "beta-shapley", "data-banzhaf")
SEEDLESS = ("tknn", "knn", "zero-budget")  # methods that draw nothing
AUTO = "auto"
METHODS = (AUTO, "forest", "tknn", "knn", "zero-budget", *RETRAINING)
HELD_OUT = 0.1
REGRESSION = "regression"
NUMBER_METHODS = tuple(method for method in METHODS if method != "zero-budget")
SUGGESTED = "gaussian"  # the kernel of the command, where the radius is suggested, too
CLASSES_ONLY = ("kernel", "rings", "keep_na", "unlabeled", "error")
MAX_TARGET = 1e150
PATTERNS = ("features", "ignore", "categorical", "date")  # options of several names or patterns
CHOICES = {  # of options that take one of a few words
    "players": ("points", "owners"),
    "method": METHODS,
    "utility": ("soft-label", "jia2019"),
    "task": ("classification", REGRESSION),
    "unlabeled": ("skip",),
    "scaling": SCALINGS,
    "kernel": (AUTO, BOX, *SHAPES),
    "engine": ("local", "dask"),
}

Data = tuple[Any, Any, Any, Any]  # points and validation set, as the functions take them


@dataclass(frozen=True)
class Settings:
    """The settings of `thresher value`, named like its options.

    Parameters
    ----------
    file, label, features, ignore, id, owner, categorical, text, image, delimiter
        The points, and what their columns are for; see `thresher.tables.columns.choose_columns`.
    validation, validation_label
        The validation set, and its own column or file of labels if that has another name.
    encoding, na
        How text is read; see `thresher.tables.reader.read_table`.
    decimal, thousands, date
        How cells say numbers and dates; see `thresher.tables.cell_format.CellFormat`.
    task
        What labels are, if they could be either: "classification" or "regression".
    empty
        For regression: the prediction if no point is near; if not given, the mean of the
        validation targets, or of all targets if there is no validation set.
    unlabeled
        "skip" if rows without a label get a suggested one and no value.
    keep_na
        Labels such as NA and null are classes, and no hint says that they may be missing.
    holdout, seed
        The share of each class to hold out if there is no validation set, and the seed for it.
    fill, standardize, scaling, model
        How features become numbers; see `thresher.tables.encoder.Encoder`.
    method, trees, folds, semivalue, mean, k, utility, error, evaluations
        How points are valued. The method "auto" is what `thresher.runs.choice` chooses.
    radius, metric, kernel, rings
        What near means. The radius "auto" is the one that `suggest_radius` suggests;
        the kernel "auto" is `weighing`.
    players
        "points", or "owners": then each owner has one value, by the game among owners.
    memory
        The most bytes to use, such as "2GB": the points are then read in parts.
    engine
        "local", or "dask": a cluster.
    guess
        Those of label, id and owner that may be guessed from the table; see
        `thresher.runs.roles`. It is in no record: what was guessed is.
    named
        Options that somebody typed. They must fit the method even if they are the default.

    Examples
    --------
    >>> from thresher.runs.settings import Settings
    >>> Settings("train.csv", label="species", standardize=True).command()
    'thresher value train.csv --label species --standardize'
    """

    file: str
    label: str = "y"
    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    id: str | None = None
    owner: str | None = None
    categorical: tuple[str, ...] = ()
    text: str | None = None
    image: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str | None = None
    date: tuple[str, ...] = ()
    task: str | None = None
    empty: float | None = None
    unlabeled: str | None = None
    keep_na: bool = False
    validation: str | None = None
    validation_label: str | None = None
    holdout: float | None = None
    seed: int = 0
    fill: str | float | None = None
    standardize: bool = False
    scaling: str = "robust"
    model: str = TEXT_MODEL
    method: str = AUTO
    trees: int = 200
    folds: int = 2
    radius: str | float = AUTO
    metric: str = "cosine"
    kernel: str = AUTO
    rings: int = 16
    semivalue: str = "shapley"
    mean: bool = False
    k: int = 5
    utility: str = "soft-label"
    error: float = 0.0
    evaluations: int | None = None
    memory: str | None = None
    engine: str = "local"
    players: str = "points"
    guess: tuple[str, ...] = field(default=(), metadata={"kept": False})  # roles to be guessed
    named: tuple[str, ...] = field(default=(), metadata={"kept": False})

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) != getattr(Settings, name):
                check_choice(option(name), getattr(self, name), choices)
        if self.players == "owners":
            self._check_owners()
        self.cells()  # raises where marks do not fit
        if self.numbers:
            self._check_numbers()
        elif self.empty is not None:
            raise InputError(f"{option('empty')} needs {option('task', REGRESSION)}")
        self._check_encoding()
        self._check_semivalue()
        check_number(option("error"), self.error, least=0, most=1)
        self._check_forest()
        self._check_near()
        self._check_holdout()
        self._check_fitting()
        self.check_seed(judged=self.validation is not None)
        self._check_engine()

    def _check_owners(self) -> None:
        owners = option("players", "owners")
        if not self.owner and "owner" not in self.guess:
            raise InputError(f"{owners} needs {option('owner')}, the column of owners")
        self._check_labeled(owners)

    def _check_encoding(self) -> None:
        if "scaling" in self.asked and not self.standardize:
            raise InputError(f"{option('scaling')} needs {option('standardize', value=True)}")
        if "model" in self.asked and self.text is None:
            raise InputError(f"{option('model')} needs {option('text')}, the column of texts")

    def _check_near(self) -> None:
        if check_metric(self.metric) == "precomputed":
            raise InputError(
                f"{option('metric')} must be cosine or euclidean: a table has features"
            )
        check_kernel(SUGGESTED, self.rings, 1.0)
        if "rings" in self.asked and self.weighing == BOX:
            raise InputError(f"{option('rings')} needs a {option('kernel')} other than box")
        if self.radius != AUTO:
            object.__setattr__(self, "radius", check_radius(_number("radius", self.radius)))

    def _check_holdout(self) -> None:
        if self.holdout is None:
            return
        if self.validation is not None:
            both = f"{option('holdout')} cannot be used with {option('validation')}"
            raise InputError(f"{both}: choose one of the two")
        if not 0 < check_number(option("holdout"), self.holdout, least=0, most=1) < 1:
            raise InputError(f"{option('holdout')} must be between 0 and 1, got {self.holdout:g}")

    @property
    def weighing(self) -> str:
        """The kernel, once a method is chosen; see docs/kernels.md for the evidence.

        Among distance methods, a Gaussian at its suggested radius finds wrong labels best. If the
        radius was given, the kernel is the box, as in `tknn_shapley`.
        """
        if self.kernel != AUTO:
            return self.kernel
        plain = self.radius == AUTO and not self.numbers and self.players == "points"
        plain &= not self.semivalue.startswith("calibrated")
        return SUGGESTED if plain and self.method in {AUTO, "tknn"} else BOX

    @property
    def numbers(self) -> bool:
        """Whether labels are numbers to predict instead of classes."""
        return self.task == REGRESSION

    def _check_numbers(self) -> None:
        """Refuse options that are for classes."""
        wanted = option("task", REGRESSION)
        if self.method not in NUMBER_METHODS:
            listed = ", ".join(NUMBER_METHODS[1:-1])
            raise InputError(
                f"{wanted} needs {option('method')} {listed} or {NUMBER_METHODS[-1]}, but the "
                f"method is {self.method}"
            )
        for name in CLASSES_ONLY:
            if name in self.asked:
                raise InputError(f"{option(name)} is for classes, and cannot be used with {wanted}")
        if self.empty is not None:
            check_number(option("empty"), self.empty, least=-MAX_TARGET, most=MAX_TARGET)
            if self.utility == "jia2019":
                raise InputError(
                    f"{option('empty')} cannot be used with {option('utility', 'jia2019')}, whose "
                    "utility without points is always 0: leave one of the two out"
                )

    def _check_engine(self) -> None:
        if self.engine == "dask":
            cluster = option("engine", "dask")
            if self.memory is not None:
                raise InputError(
                    f"{option('memory')} cannot be used with {cluster}: workers have their own"
                )
            self._check_streaming(cluster)
        if self.memory is not None:
            check_memory(self.memory)
            self._check_streaming(option("memory"))

    def _check_streaming(self, wanted: str) -> None:
        """Refuse options that need the whole table."""
        check_streaming_fill(self.fill)
        self._check_labeled(wanted)
        methods = ("forest", "tknn") if self.numbers else ("tknn",)
        if self.method not in {AUTO, *methods}:
            listed = " or ".join(methods)
            raise InputError(
                f"{wanted} needs {option('method')} {listed}, but the method is {self.method}"
            )
        alone = self.numbers and self.method in {AUTO, "forest"} and self.holdout is None
        if self.validation is None and not alone:
            raise InputError(
                f"{wanted} needs {option('validation')}: held-out rows are chosen from all rows, "
                "so split some off beforehand"
            )
        if self.text is not None:
            raise InputError(
                f"{wanted} cannot be used with {option('text')}: embed the texts first, with "
                "thresher embed"
            )

    def _check_labeled(self, wanted: str) -> None:
        if self.unlabeled is not None:
            raise InputError(
                f"{wanted} cannot be used with {option('unlabeled')}: drop the rows without a "
                "label first"
            )

    def _check_forest(self) -> None:
        check_count(option("folds"), self.folds, least=2)
        if check_count(option("trees"), self.trees) % self.folds:
            raise InputError(
                f"{option('trees')} must be a multiple of {option('folds')}, got {self.trees} and "
                f"{self.folds}"
            )

    def _check_semivalue(self) -> None:
        spaced = re.sub(r",\s*", ", ", self.semivalue)
        try:
            calibrated = isinstance(check_semivalue(spaced, calibrated=True), Calibrated)
        except InputError:
            raise InputError(
                f"{option('semivalue')} must be shapley, banzhaf, leave-one-out, 'beta(4, 1)' "
                f"with two positive numbers or 'calibrated(5)', got {self.semivalue!r}"
            ) from None
        object.__setattr__(self, "semivalue", spaced)
        near = self.method in {AUTO, "tknn"} and self.kernel in {AUTO, BOX}
        if calibrated and (not near or self.numbers or self.players != "points"):
            raise InputError(
                f"{option('semivalue')} {self.semivalue} is for points with classes and "
                f"{option('method', 'tknn')}, without a {option('kernel')} other than box"
            )

    def _check_fitting(self) -> None:
        """Refuse options that the method would ignore."""
        others = tuple(method for method in METHODS if method not in {AUTO, "forest"})
        wanted = {
            "trees": ("forest",),
            "folds": ("forest",),
            "radius": ("tknn", "zero-budget"),
            "kernel": ("tknn",),
            "rings": ("tknn",),
            "semivalue": ("forest", "tknn", *(("knn",) if self.numbers else ())),
            "players": ("forest", "tknn"),
            "metric": ("tknn", "knn", "zero-budget"),
            "k": ("knn",),
            "utility": ("knn",),
            "error": ("knn",),
            "mean": ("forest", "tknn", "knn", "zero-budget"),
            "evaluations": RETRAINING[1:],
            **dict.fromkeys(("fill", "standardize"), others),
        }
        for name, methods in wanted.items():
            fits = {*methods, AUTO} if {"forest", "tknn"} & {*methods} else methods
            if name in self.asked and self.method not in fits:
                *first, last = methods
                listed = f"{', '.join(first)} or {last}" if first else last
                raise InputError(
                    f"{option(name)} needs {option('method')} {listed}, but the method is "
                    f"{self.method}"
                )

    def check_seed(self, *, judged: bool) -> None:
        """Refuse a seed that was typed if nothing is drawn: `judged` by a validation set."""
        if "seed" in self.named and judged and self.method in SEEDLESS:
            *first, last = [each for each in METHODS if each not in {AUTO, *SEEDLESS}]
            raise InputError(
                f"{option('seed')} needs {option('method')} {', '.join(first)} or {last}, or rows "
                f"that are held out, but the method is {self.method}, and there is a validation set"
            )

    def cells(self) -> CellFormat:
        """How cells say numbers and dates."""
        return CellFormat(self.decimal, self.thousands, named_formats(self.date))

    @property
    def growth(self) -> dict[str, Any]:
        """How a forest is grown."""
        return {"trees": self.trees, "folds": self.folds, "seed": self.seed}

    def radius_or(self, validation_points: int, suggest: Callable[[], float]) -> float:
        """The radius that was given, or the one that the validation set suggests."""
        if self.radius != AUTO:
            return float(self.radius)
        if validation_points < 2:
            more = "hold out more rows, or give" if self.validation is None else "give more, or"
            raise InputError(
                f"{option('radius', AUTO)} needs at least two validation points, but there is one: "
                f"{more} a number"
            )
        return float(suggest())

    @property
    def in_parts(self) -> bool:
        """Whether the points are never in memory as a whole."""
        return self.memory is not None or self.engine == "dask"

    def reading(self) -> dict[str, Any]:
        """How the files of tables are read."""
        return {"delimiter": self.delimiter, "encoding": self.encoding, "na": self.na}

    def given(self) -> dict[str, Any]:
        """The settings that are not the default."""
        pairs = ((each, getattr(self, each.name)) for each in RECORDED)
        return {each.name: entry for each, entry in pairs if entry != each.default}

    @property
    def asked(self) -> set[str]:
        """The settings that are not the default, and those that somebody typed."""
        return {*self.given(), *self.named}

    def record(self) -> dict[str, Any]:
        """What makes the same run again: versions, the command and the settings."""
        versions = {"thresher": __version__, "numpy": np.__version__}
        kept = {each.name: getattr(self, each.name) for each in RECORDED}
        return {**versions, "command": self.command(), "settings": kept}

    def command(self) -> str:
        """The command that makes the same run."""
        words = ["thresher", "value", self.file]
        for name, entry in self.given().items():
            if name != "file":
                words += [f"--{name.replace('_', '-')}", *_written(name, entry)]
        return shlex.join(words)


RECORDED = tuple(each for each in fields(Settings) if each.metadata.get("kept", True))


def _written(name: str, entry: Any) -> list[str]:
    if entry is True:
        return []
    if name in PATTERNS:  # where commas and spaces at the ends have a meaning of their own
        entry = tuple(map(_pattern, entry))
    return [",".join(entry) if isinstance(entry, tuple) else str(entry)]


def _pattern(name: str) -> str:
    """A name as it can be typed in a list: a pattern, if it has a comma or ends in a space."""
    found = re.sub(r"^\s|,|\s$", "?", escape(name))
    return name if found == escape(name) else found


def _number(name: str, text: object) -> float:
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{option(name)} must be auto or a number, got {text!r}") from None
