"""The dimension of each covariate, for representations whose dimensions are not paired with covariates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from covalign._core.data_errors import not_two_dimensional, too_many_covariates
from covalign._core.linalg import Array, dense
from covalign._core.messages import message
from covalign._core.user_arrays import numbers, plain
from covalign.closed_form.metrics.alignment import cross_correlation, moments_of


class Matching(NamedTuple):
    """Covariate p is matched with column ``columns[p]``, multiplied by ``signs[p]``.

    >>> import numpy as np
    >>> from covalign import metrics
    >>> metrics.Matching(np.array([1]), np.array([-1.0])).apply([[5, 7]]).tolist()
    [[-7.0]]
    """

    columns: NDArray[np.intp]
    signs: Array

    def apply(self, Z: Any) -> Array:
        """The matched columns of Z (n x P) with their signs."""
        rows = np.asarray(dense(numbers(plain(Z, "Z"), "Z")), dtype=np.float64)
        if rows.ndim != 2:
            raise not_two_dimensional("Z", rows.shape)
        if rows.shape[1] <= self.columns.max():
            problem = f"this matching needs a representation with at least {int(self.columns.max()) + 1} columns"
            raise ValueError(message(problem, got=rows.shape[1], remedy="pass the Z it was found on"))
        return np.asarray(rows[:, self.columns] * self.signs)


def match(Z: Any, Y: Any = None) -> Matching:
    """The one-to-one matching with the largest sum of |corr(z_k, y_p)| (Hungarian), signed so that corr >= 0.

    >>> from covalign import metrics
    >>> Y = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> matching = metrics.match([[a * b, b, -a] for a, b in Y], Y)
    >>> matching.columns.tolist(), matching.signs.tolist()
    ([2, 1], [-1.0, 1.0])
    """
    C = cross_correlation(moments_of(Z, Y)).T
    if len(C) > C.shape[1]:
        raise too_many_covariates(*C.shape)
    covariates, columns = linear_sum_assignment(np.abs(C), maximize=True)
    return Matching(columns, np.where(C[covariates, columns] < 0, -1.0, 1.0))
