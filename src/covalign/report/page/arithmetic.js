// The arithmetic of covalign/report/facts.py, line by line: P x P matrices in, every number of the page out.
"use strict";

const arithmetic = (() => {
  // A B. Rows of B are walked in order, and numbers of the facts are packed once: with 60 covariates this is all there is.
  const packed = new WeakMap();
  function rowsOf(A) {
    if (A[0] instanceof Float64Array) return A;
    if (!packed.has(A)) packed.set(A, A.map((row) => Float64Array.from(row)));
    return packed.get(A);
  }
  function multiply(A, B) {
    const [left, right] = [rowsOf(A), rowsOf(B)];
    const width = right[0].length;
    return left.map((row) => {
      const sums = new Float64Array(width);
      for (let k = 0; k < row.length; k += 1) {
        const [a, from] = [row[k], right[k]];
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
  function unitRows(F) {
    const cutoff = 10 * F.length * Number.EPSILON;
    return F.map((row, p) => {
      const norm = Math.hypot(...row);
      return Float64Array.from(row, (value, q) => (norm <= cutoff ? Number(q === p) : value / norm));
    });
  }

  function mixing(of, regime, lam) {
    if (regime === "as fitted") return unitRows(of.as_fitted);
    if (regime === "exclusive") return unitRows(of.M_inverse);
    const weight = regime === "independent" ? 0 : regime === "strongest" ? 1 : lam;
    return unitRows(of.M.map((row, p) => row.map((value, q) => (1 - weight) * Number(p === q) + weight * value)));
  }

  function toCorrelation(C) {
    const scale = diagonal(C).map((variance) => (variance > 0 ? 1 / Math.sqrt(variance) : 0));
    return C.map((row, p) => Array.from(row, (value, q) => value * scale[p] * scale[q]));
  }

  // corr(z~, y) and corr(z~)
  function correlations(of, F) {
    const withY = F.map((row) => Array.from(row, () => NaN));
    const all = multiply(F, of.C);
    for (const group of of.groups) {
      const FC = group.C === null ? all : multiply(F, group.C);
      const sd = F.map((row, p) => Math.sqrt(row.reduce((sum, value, k) => sum + value * FC[p][k], 0)));
      const cross = multiply(F, group.c);
      group.columns.forEach((q, j) => {
        for (let p = 0; p < F.length; p += 1) withY[p][q] = group.s[j] > 0 ? cross[p][j] / sd[p] / group.s[j] : NaN;
      });
    }
    return { withY, among: toCorrelation(multiply(all, transpose(F))) };
  }

  function coupling(C) {
    let sum = 0;
    C.forEach((row, p) => row.forEach((value, q) => { if (p !== q) sum += value * value; }));
    return sum;
  }

  function standardError(values) {
    const known = there(values);
    if (known.length < 2) return NaN;
    const middle = mean(known);
    const squares = known.reduce((sum, value) => sum + (value - middle) ** 2, 0);
    return Math.sqrt(squares / (known.length - 1) / known.length);
  }

  // tanh(mean(a) -+ t se(a)), a = atanh(alignment); t comes with the facts
  function interval(values, quantiles) {
    const bound = 1 - 1e-12;
    const scaled = there(values).map((value) => Math.atanh(Math.min(bound, Math.max(-bound, value))));
    const middle = mean(scaled);
    const reach = quantiles[Math.max(scaled.length - 1, 1)] * standardError(scaled);
    return [Math.tanh(middle - reach), Math.tanh(middle + reach)];
  }

  function heldOut(facts, regime, lam) {
    const both = facts.folds.map((fold) => correlations(fold, mixing(fold, regime, lam)));
    const perFold = transpose(both.map(({ withY }) => diagonal(withY)));
    const total = facts.folds.reduce((sum, fold) => sum + fold.n, 0);
    const average = both[0].among.map((row, p) =>
      row.map((_, q) => both.reduce((sum, { among }, f) => sum + (facts.folds[f].n / total) * among[p][q], 0)));
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

  // All numbers of one setting.
  function measured(facts, regime, lam) {
    const { withY, among } = correlations(facts.fitted, mixing(facts.fitted, regime, lam));
    const judged = facts.folds.length > 0 && (regime !== "exclusive" || facts.held_out_exclusive);
    return {
      withY,
      among,
      alignment: diagonal(withY),
      coupling: coupling(among),
      heldOut: judged ? heldOut(facts, regime, lam) : null,
    };
  }

  // The largest lambda whose dimensions couple by at most the budget: a grid brackets the last crossing, bisection finds it.
  function lamWithin(facts, budget) {
    const at = (lam) => coupling(correlations(facts.fitted, mixing(facts.fitted, "tunable", lam)).among);
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

  return { measured, mixing, multiply, transpose, lamWithin, shares, mean };
})();

if (typeof module !== "undefined") module.exports = arithmetic;
