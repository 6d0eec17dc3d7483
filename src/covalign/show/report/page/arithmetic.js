// The arithmetic of covalign/show/report/facts.py: from P x P matrices to every number of the page.
"use strict";

const arithmetic = (() => {
  // A B, rows of B walked in order
  function multiply(A, B) {
    const width = B[0].length;
    return Array.from(A, (row) => {
      const sums = new Float64Array(width);
      for (let k = 0; k < row.length; k += 1) {
        const [a, from] = [row[k], B[k]];
        if (a !== 0) for (let j = 0; j < width; j += 1) sums[j] += a * from[j];
      }
      return sums;
    });
  }
  const transpose = (A) => Array.from(A[0], (_, j) => Float64Array.from(A, (row) => row[j]));
  const diagonal = (A) => A.map((row, i) => row[i]);
  const there = (values) => Array.from(values).filter((value) => value !== null && !Number.isNaN(value));
  const mean = (values) => {
    const known = there(values);
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
  };

  // A row of zeros p becomes e_p, the limit of (1 - lam) e_p + lam 0.
  function noZeroRows(F) {
    const cutoff = 10 * F.length * Number.EPSILON;
    return F.map((row, p) => (Math.hypot(...row) <= cutoff ? row.map((_, q) => Number(q === p)) : row));
  }

  function unitRows(F) {
    return noZeroRows(F).map((row) => {
      const norm = Math.hypot(...row);
      return Float64Array.from(row, (value) => value / norm);
    });
  }

  const weightOf = (regime, lam) => (regime === "independent" ? 0 : regime === "strongest" ? 1 : lam);

  function mixing(of, regime, lam) {
    if (regime === "as fitted") return unitRows(of.as_fitted);
    if (regime === "exclusive") return unitRows(of.M_inverse);
    const weight = weightOf(regime, lam);
    return unitRows(of.M.map((row, p) => row.map((value, q) => (1 - weight) * Number(p === q) + weight * value)));
  }

  // Correlations do not depend on the lengths of the rows of F. With F = (1 - w) I + w M,
  //   F C F' = (1 - w)^2 C + w (1 - w) (M C + (M C)') + w^2 M C M'   and   F c = (1 - w) c + w M c:
  // the products are computed once, and each lambda costs P^2. Other regimes are M = F at w = 1.
  const kept = new WeakMap();
  function products(of, regime) {
    const name = ["as fitted", "exclusive"].includes(regime) ? regime : "tunable";
    if (!kept.has(of)) kept.set(of, {});
    if (!(name in kept.get(of))) kept.get(of)[name] = { fixed: name !== "tunable", ...multiplied(of, name) };
    return kept.get(of)[name];
  }

  function multiplied(of, name) {
    const M = name === "tunable" ? noZeroRows(of.M) : mixing(of, name);
    const turned = transpose(M);
    const around = (C) => {
      const MC = multiply(M, C);
      const both = MC.map((row, p) => row.map((value, q) => value + MC[q][p]));
      return [C.map((row) => Float64Array.from(row)), both, multiply(MC, turned)];
    };
    const all = around(of.C);
    const groups = of.groups.map(({ columns, C, c, s }) =>
      ({ columns, s, c, Mc: multiply(M, c), variances: (C === null ? all : around(C)).map(diagonal) }));
    return { all, groups };
  }

  // corr(z~)
  function among(of, regime, lam) {
    const { all: [none, one, two], fixed } = products(of, regime);
    const w = fixed ? 1 : weightOf(regime, lam);
    const [a, b, c] = [(1 - w) ** 2, w * (1 - w), w ** 2];
    const scale = none.map((row, p) => {
      const variance = a * row[p] + b * one[p][p] + c * two[p][p];
      return variance > 0 ? 1 / Math.sqrt(variance) : 0;
    });
    return none.map((row, p) => {
      const [found, first, second] = [new Float64Array(row.length), one[p], two[p]];
      for (let q = 0; q < row.length; q += 1) found[q] = (a * row[q] + b * first[q] + c * second[q]) * scale[p] * scale[q];
      return found;
    });
  }

  // corr(z~_p, y_q), q among the columns of a group
  function correlation({ c, Mc, s, variances: [none, one, two] }, w, p, j) {
    const sd = Math.sqrt((1 - w) ** 2 * none[p] + w * (1 - w) * one[p] + w ** 2 * two[p]);
    return s[j] > 0 ? ((1 - w) * c[p][j] + w * Mc[p][j]) / sd / s[j] : NaN;
  }

  function withCovariates(of, regime, lam) {
    const { groups, fixed } = products(of, regime);
    const w = fixed ? 1 : weightOf(regime, lam);
    const found = of.M.map((row) => row.map(() => NaN));
    for (const group of groups) {
      group.columns.forEach((q, j) => found.forEach((row, p) => { row[q] = correlation(group, w, p, j); }));
    }
    return found;
  }

  // Only the diagonal of corr(z~, y)
  function alignments(of, regime, lam) {
    const { groups, fixed } = products(of, regime);
    const w = fixed ? 1 : weightOf(regime, lam);
    const found = of.M.map(() => NaN);
    for (const group of groups) group.columns.forEach((q, j) => { found[q] = correlation(group, w, q, j); });
    return found;
  }

  function coupling(C) {
    let sum = 0;
    C.forEach((row, p) => {
      for (let q = 0; q < row.length; q += 1) if (p !== q) sum += row[q] * row[q];
    });
    return sum;
  }

  function standardError(values) {
    const known = there(values);
    if (known.length < 2) return NaN;
    const middle = mean(known);
    const squares = known.reduce((sum, value) => sum + (value - middle) ** 2, 0);
    return Math.sqrt(squares / (known.length - 1) / known.length);
  }

  // tanh(mean(a) -+ t se(a)), a = atanh(alignment); the facts hold t
  function interval(values, quantiles) {
    const bound = 1 - 1e-12;
    const scaled = there(values).map((value) => Math.atanh(Math.min(bound, Math.max(-bound, value))));
    const middle = mean(scaled);
    const reach = quantiles[Math.max(scaled.length - 1, 1)] * standardError(scaled);
    return [Math.tanh(middle - reach), Math.tanh(middle + reach)];
  }

  function heldOut(facts, regime, lam) {
    const perFold = transpose(facts.folds.map((fold) => alignments(fold, regime, lam)));
    const total = facts.folds.reduce((sum, fold) => sum + fold.n, 0);
    const average = facts.covariates.map(() => new Float64Array(facts.covariates.length));
    for (const fold of facts.folds) {
      const share = fold.n / total;
      among(fold, regime, lam).forEach((row, p) => {
        for (let q = 0; q < row.length; q += 1) average[p][q] += share * row[q];
      });
    }
    const limits = perFold.map((values) => interval(values, facts.quantiles));
    const means = Array.from(transpose(perFold), mean);
    const [meanLow, meanHigh] = interval(means, facts.quantiles);
    return {
      mean: mean(means),
      meanLow,
      meanHigh,
      alignment: Array.from(perFold, mean),
      se: Array.from(perFold, standardError),
      low: limits.map(([low]) => low),
      high: limits.map(([, high]) => high),
      coupling: coupling(average),
    };
  }

  // A point of the frontier.
  function point(facts, regime, lam) {
    const judged = facts.folds.length > 0 && (regime !== "exclusive" || facts.held_out_exclusive);
    return {
      alignment: alignments(facts.fitted, regime, lam),
      coupling: coupling(among(facts.fitted, regime, lam)),
      heldOut: judged ? heldOut(facts, regime, lam) : null,
    };
  }

  // All numbers of one setting.
  function measured(facts, regime, lam) {
    return {
      ...point(facts, regime, lam),
      withY: withCovariates(facts.fitted, regime, lam),
      among: among(facts.fitted, regime, lam).map((row) => Array.from(row)),
    };
  }

  // The largest lambda with at most this coupling: a grid brackets the last crossing, bisection finds it.
  function lamWithin(facts, budget) {
    const at = (lam) => coupling(among(facts.fitted, "tunable", lam));
    const grid = Array.from({ length: 201 }, (_, i) => i / 200);
    const slack = 10 * facts.covariates.length * Number.EPSILON;
    let last = -1;
    grid.forEach((lam, i) => { if (at(lam) <= budget + slack) last = i; });
    if (last === -1) return 0;
    if (last === grid.length - 1) return 1;
    let [low, high] = [grid[last], grid[last + 1]];
    for (let i = 0; i < 60; i += 1) {
      const middle = (low + high) / 2;
      if (at(middle) <= budget) low = middle;
      else high = middle;
    }
    return low;
  }

  // Share of a view's variance by each informed factor: see facts.shares.
  function shares(view, F) {
    const total = F.map(() => 0);
    const form = (row, A) => row.reduce((sum, a, i) => sum + a * A[i].reduce((inner, value, j) => inner + value * row[j], 0), 0);
    for (const { Q, C } of view.groups) {
      F.forEach((row, p) => {
        const own = form(row, C);
        if (own > 0) total[p] += form(row, Q) / own;
      });
    }
    return total.map((value) => value / Math.max(view.varying, 1));
  }

  return { point, measured, mixing, lamWithin, shares, mean };
})();

if (typeof module !== "undefined") module.exports = arithmetic;
