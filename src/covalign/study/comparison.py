"""All methods on the user's data: a table with a row for every method.

``covalign.study.scores`` defines the numbers, and when a method has none. Slow methods are cross-validated only on
request. An interrupted call resumes from the results that it kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import covalign as package
from covalign._core.data_errors import too_few_rows_for_folds, too_many_factors_asked
from covalign._core.messages import listed, message
from covalign.exceptions import DependentCovariatesError, PeerError
from covalign.study import contenders, runner
from covalign.study.baselines import method as face
from covalign.study.baselines.method import Method
from covalign.study.complete_cases import complete
from covalign.study.results_store import Row, Store, Unit, setting
from covalign.study.scores import Data, Settings, divisions, held_out, in_sample
from covalign.tables import groups as grouping
from covalign.tables.covariates import Encoding, as_frame, encode

METRICS = (
    *("held_out_alignment", "held_out_se", "alignment", "coupling", "held_out_coupling", "variance", "total_variance"),
    *("disentanglement", "completeness", "informativeness", "sap", "nsap", "seconds"),
)
COLUMNS = ("method", "family", "status", *METRICS, "folds", "groups", "note")
NO_EXCLUSIVE = "the covariates are linearly dependent (as all dummies of a category are): no exclusive regime exists"
LEAST_ROWS = 10  # of the cross-validated metrics


class Task(NamedTuple):
    """A method to fit to all rows or, if ``folds`` > 0, to every training set."""

    method: Method
    folds: int = 0

    def unit(self, digest: str) -> Unit:
        """The key of the task in the store."""
        return Unit(digest, self.method.name, setting(folds=self.folds), 0)


def compare(
    X: Any,
    Y: Any,
    n_factors: int = 10,
    methods: Iterable[str | Method] | None = None,
    *,
    random_state: int = 0,
    budget: int = 2000,
    folds: int = 5,
    slow_folds: int = 0,
    skip_slow: bool = False,
    timeout: float | None = None,
    missing: str | None = None,
    keep: str | Path | None = None,
    groups: Any = None,
    drop_first: bool = True,
) -> pd.DataFrame:
    """A table with a row for every method, sorted by held-out alignment (then by alignment in sample).

    X is a table or a dict of views, Y the covariates. ``methods`` are names or objects (None: all methods). ``budget``
    is the maximum number of iterations of iterative methods. ``timeout`` is the time limit of a fit in seconds, for
    packages that run in their own process. ``folds`` is the number of cross-validation folds (0: none), ``slow_folds``
    that of slow methods, which ``skip_slow`` leaves out. Missing values raise an error, unless ``missing`` is "drop"
    (leave out incomplete samples) or "mean" (fill in the means of features). ``drop_first`` is that of
    ``LatentAligner``; ``table.attrs["categories"]`` says which levels have no dimension.

    ``groups`` says which samples belong together, such as those of a patient: one label for every sample, or the name
    of a column of Y, which then is no covariate. A group is fitted or left out as a whole, and the standard error
    counts groups. The column ``groups`` has their number, 0 if samples were taken as independent.

    The folder ``keep`` keeps the results of finished methods, for calls with the same data and settings. ``status`` is
    "done", "absent" or "failed"; ``note`` says why a method, or one of its numbers, is missing. A method that fails in
    cross-validation only keeps its other numbers.

    >>> import covalign as ca
    >>> from covalign.study.comparison import compare
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_covariates=2, random_state=0)
    >>> table = compare(s.X, s.Y, n_factors=5, methods=["PCA", "Y as factors"])
    >>> table["method"].tolist(), table["held_out_alignment"].isna().tolist()
    (['PCA', 'Y as factors'], [False, True])
    """
    ready = complete(X, labelled(Y, groups), missing)
    data = numbers(ready.views, ready.Y, drop_first)
    if folds or slow_folds:
        grouping.warn(data.n_groups, grouping.likely_column(ready.Y) if groups is None else None)
    check(data, n_factors, (folds, slow_folds), random_state)
    settings = Settings(n_factors, random_state, budget)
    wanted = contenders.chosen(methods, is_representation(data))
    wanted = [contenders.patient(one, timeout) for one in wanted if not (skip_slow and contenders.is_slow(one))]
    absent = {one.name: why for one in wanted if (why := one.absent()) is not None}
    tasks = []
    for one in wanted:
        if one.name not in absent:
            divided, _ = folds_of(one, folds, slow_folds)
            tasks += [Task(one), Task(one, divided)] if divided else [Task(one)]
    rows, failed = results(tasks, data, settings, None if keep is None else Store(keep))
    reasons = {name: ("absent", why) for name, why in absent.items()} | failed
    table = tabled(wanted, rows, reasons, folds, slow_folds)
    table["groups"] = data.n_groups or 0
    table.attrs["categories"] = Encoding.learn(without_groups(ready.Y), drop_first=drop_first).categories()
    return table


def labelled(Y: Any, groups: Any) -> Any:
    """Y with the numbers of groups as a column, so that they are joined by name as covariates are."""
    if groups is None:
        return Y
    Y, labels = grouping.separated(Y, groups)
    frame = as_frame(Y)
    return frame.assign(**{grouping.COLUMN: grouping.numbers(labels, len(frame), frame.index)})


def without_groups(Y: pd.DataFrame) -> pd.DataFrame:
    """The covariates alone."""
    return Y.drop(columns=[grouping.COLUMN], errors="ignore")


def numbers(views: dict[str, pd.DataFrame], Y: pd.DataFrame, drop_first: bool = True) -> Data:
    """Views as arrays, encoded covariates (categories become dummies), and the numbers of groups."""
    groups = Y[grouping.COLUMN].to_numpy() if grouping.COLUMN in Y else None
    coded = encode(without_groups(Y), drop_first=drop_first)
    arrays, covariates = face.named_views(views, coded)
    return Data(arrays, covariates, tuple(coded.columns), groups)


def is_representation(data: Data) -> bool:
    """Whether X is one table, narrow enough to be transformed without principal components."""
    return len(data.views) == 1 and next(iter(data.views.values())).shape[1] <= contenders.WIDEST


def check(data: Data, n_factors: int, folds: tuple[int, ...], random_state: int) -> None:
    """Refuse, before any method runs, what no method can do."""
    n, p = data.Y.shape
    if p > n_factors:
        raise too_many_factors_asked(p, n_factors)
    if n < LEAST_ROWS:
        raise too_few_rows_for_folds(n, LEAST_ROWS)
    for count in dict.fromkeys(folds):
        if not (isinstance(count, int) and (count == 0 or 2 <= count <= n)):
            raise ValueError(message(f"folds needs 0 (none), or a number from 2 to the {n} samples", got=repr(count)))
        made = divisions(data.Y, count, random_state, data.groups)
        for train, _ in made:
            constant = np.ptp(data.Y[train], axis=0) == 0
            if constant.any():
                problem = f"In one of {len(made)} training sets a covariate is constant: "
                another = " another random_state" if data.groups is None else " more groups"
                remedy = f"Use fewer folds,{another} or folds=0, or drop the rare covariate"
                raise ValueError(message(problem + listed(np.array(data.names)[constant]), remedy=remedy))


def folds_of(method: Method, folds: int, slow_folds: int) -> tuple[int, str]:
    """The number of folds of a method, and the reason if it has none."""
    if method.name in contenders.NOT_PLACED:
        return 0, f"not held out: {contenders.NOT_PLACED[method.name]}"
    if contenders.is_slow(method):
        return slow_folds, "" if slow_folds else "not held out: the method is slow (slow_folds=5 holds samples out)"
    return folds, "" if folds else "not held out: folds=0"


# -- the work ---------------------------------------------------------------------------------------------------------


def results(
    tasks: list[Task], data: Data, settings: Settings, store: Store | None
) -> tuple[list[Row], dict[str, tuple[str, str]]]:
    """Rows of all tasks, and {method: (status, reason)} of failures; results in the store are not computed again."""
    digest, rows, failed = digest_of(data, settings), [], {}
    finished = set() if store is None else store.units(digest)
    left = [task for task in tasks if task.unit(digest) not in finished]
    if store is not None:
        wanted = {task.unit(digest) for task in tasks}
        kept = store.frame(digest)[["method", "setting", "metric", "value"]].to_numpy()
        rows += [Row(name, *of) for name, at, *of in kept if Unit(digest, name, at, 0) in wanted]
    with runner.single_threaded(), runner.ended_properly(), runner.progress([t.unit("compare") for t in left]) as tick:
        for task in left:
            if task.method.name not in failed:
                result = attempt(task, data, settings)
                if isinstance(result, tuple):
                    failed[task.method.name] = result
                else:
                    rows += result
                    if store is not None:
                        store.append(task.unit(digest), result)
            tick(task.unit("compare"))
    return rows, failed


def attempt(task: Task, data: Data, settings: Settings) -> list[Row] | tuple[str, str]:
    """The rows of a task, or (status, reason): if a method fails, the others still run."""
    method, folds = task
    result = runner.attempted(held_out(method, data, settings, folds) if folds else in_sample(method, data, settings))
    if isinstance(result, DependentCovariatesError):
        return "absent", NO_EXCLUSIVE
    if isinstance(result, PeerError):
        return "failed", " ".join(str(result).split())
    return ("failed", runner.last_line(result)) if isinstance(result, Exception) else result


def digest_of(data: Data, settings: Settings) -> str:
    """Fingerprint of data and settings; it changes when they change."""
    digest = hashlib.sha256(repr((package.__version__, settings, data.names)).encode())
    grouped = [] if data.groups is None else [("groups", data.groups)]
    for name, values in [*data.views.items(), ("", data.Y), *grouped]:
        digest.update(repr((name, values.shape)).encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()[:16]


# -- the table --------------------------------------------------------------------------------------------------------


def tabled(
    wanted: list[Method], rows: list[Row], reasons: dict[str, tuple[str, str]], folds: int, slow_folds: int
) -> pd.DataFrame:
    """The table with a row for every method; methods without numbers come last."""
    values: dict[str, dict[str, Any]] = {}
    for row in rows:
        values.setdefault(row.method, {})[row.metric.replace("-", "_").replace(" ", "_")] = float(row.value)
    lines = []
    for method in wanted:
        status, why = reasons.get(method.name, ("done", folds_of(method, folds, slow_folds)[1]))
        line = {"method": method.name, "family": contenders.family(method), "status": status, "note": why}
        lines.append({**line, **values.get(method.name, {})})
    table = pd.DataFrame(lines, columns=list(COLUMNS)).astype(dict.fromkeys((*METRICS, "folds"), np.float64))
    table["folds"] = table["folds"].fillna(0).astype(int)
    order = table.assign(undone=table["status"] != "done")
    by = ["undone", "held_out_alignment", "alignment"]
    order = order.sort_values(by, ascending=[True, False, False], kind="stable", na_position="last")
    return table.loc[order.index].reset_index(drop=True)
