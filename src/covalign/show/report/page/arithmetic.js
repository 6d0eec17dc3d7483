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

  // facts.FIXED: regimes that do not depend on lambda, and their matrices
  const FIXED = { "as fitted": "as_fitted", exclusive: "M_inverse", exact: "F_exact" };

  function mixing(of, regime, lam) {
    if (regime in FIXED) return unitRows(of[FIXED[regime]]);
    const weight = weightOf(regime, lam);
    return unitRows(of.M.map((row, p) => row.map((value, q) => (1 - weight) * Number(p === q) + weight * value)));
  }

  // Correlations do not depend on the lengths of the rows of F. With F = (1 - w) I + w M,
  //   F C F' = (1 - w)^2 C + w (1 - w) (M C + (M C)') + w^2 M C M'   and   F c = (1 - w) c + w M c:
  // the products are computed once, and each lambda costs P^2. Other regimes are M = F at w = 1.
  const kept = new WeakMap();
  function products(of, regime) {
    const name = regime in FIXED ? regime : "tunable";
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

  // Second moments of left-out rows under F = (1 - w) I + w M are quadratic in w, as above.
  function foldProducts(fold, regime) {
    const name = regime in FIXED ? regime : "tunable";
    if (!kept.has(fold)) kept.set(fold, {});
    if (!(name in kept.get(fold))) kept.get(fold)[name] = { fixed: name !== "tunable", ...multipliedParts(fold, name) };
    return kept.get(fold)[name];
  }

  function multipliedParts(fold, name) {
    const M = name === "tunable" ? noZeroRows(fold.M) : mixing(fold, name);
    const turned = transpose(M);
    const around = (C) => {
      const MC = multiply(M, C);
      return [C, MC.map((row, p) => row.map((value, q) => value + MC[q][p])), multiply(MC, turned)];
    };
    const identity = fold.M.map((row, p) => row.map((_, q) => Number(p === q)));
    const parts = fold.parts.map(({ n, C }) => ({ n, all: around(symmetric(C)) }));
    return { unit: around(identity), fittedWith: multiply(M, fold.M), parts };
  }

  // A matrix whose rows are given from the diagonal on
  const symmetric = (rows) => rows.map((_, p) => Float64Array.from(rows, (__, q) => rows[Math.min(p, q)][Math.abs(p - q)]));

  const quadratic = ([none, one, two], w, p) => (1 - w) ** 2 * none[p] + w * (1 - w) * one[p] + w ** 2 * two[p];

  // For every part of a fold the sums of pooled_correlation.Pairs, a list of six for each covariate.
  function pairSums(fold, regime, lam) {
    const { unit, fixed } = foldProducts(fold, regime);
    const w = fixed ? 1 : weightOf(regime, lam);
    const norms = unit.map(diagonal);
    const linear = (terms, j) => (fixed ? terms[0][j] : (1 - w) * terms[0][j] + w * terms[1][j]);
    return fold.parts.map(({ groups }) => {
      const sums = fold.M.map(() => [0, 0, 0, 0, 0, 0]);
      for (const group of groups) {
        const { z, zz, zy } = group[fixed ? regime : "tunable"];
        group.columns.forEach((p, j) => {
          if (!fold.known[p]) return;
          const norm = Math.sqrt(quadratic(norms, w, p));
          const square = (fixed ? zz[0][j] : quadratic(zz, w, j)) / norm ** 2;
          const means = [1, linear(z, j) / norm, group.y[j], square, group.yy[j], linear(zy, j) / norm];
          sums[p] = means.map((value) => group.n * value);
        });
      }
      return sums;
    });
  }

  // Alignment of a fold's fit on its own rows: the diagonal of F M.
  function ownAlignment(fold, regime, lam) {
    const { unit, fittedWith, fixed } = foldProducts(fold, regime);
    const w = fixed ? 1 : weightOf(regime, lam);
    const norms = unit.map(diagonal);
    return fold.M.map((row, p) => ((1 - w) * row[p] + w * fittedWith[p][p]) / Math.sqrt(quadratic(norms, w, p)));
  }

  function pooled([n, z, y, zz, yy, zy]) {
    if (!(n > 0)) return NaN;
    const [a, b] = [zz - (z * z) / n, yy - (y * y) / n];
    if (!(a > 1e-12 * zz && b > 1e-12 * yy)) return NaN;
    return Math.min(1, Math.max(-1, (zy - (z * y) / n) / Math.sqrt(a) / Math.sqrt(b)));
  }

  const scaled = (r) => Math.atanh(Math.min(1 - 1e-12, Math.max(-1 + 1e-12, r)));
  const orZero = (r) => (Number.isNaN(r) ? 0 : r);

  // pooled_correlation.excess_kurtosis, of the parts of a covariate: a list of six sums for each
  function excessKurtosis(parts, grouped) {
    const there = parts.filter(([n]) => n > 0);
    const A = there.length;
    if (grouped || A < 2) return 0;
    const n = there.reduce((sum, part) => sum + part[0], 0);
    const centre = there.reduce((sum, part) => sum + part[2], 0) / n;
    const squares = there.map(([m, , y, , yy]) => yy - 2 * centre * y + m * centre ** 2);
    const total = squares.reduce((sum, square) => sum + square, 0);
    const ratio = total > 0 ? n / total : 0;
    const spread = there.reduce((sum, [m], a) => sum + (squares[a] * ratio - m) ** 2, 0);
    return Math.max((spread / n) * (A / (A - 1)) - 2, 0) / n;
  }

  const TAILS = 1.5; // pooled_correlation.TAILS

  // pooled_correlation.learned
  function learned(limit, share, gain) {
    const known = Math.max(share, limit ** 2);
    return limit > 0 ? limit / Math.sqrt(known + (1 - known) * gain) : limit;
  }

  // pooled_correlation._estimate: value, standard error and interval from the values without each part
  function estimated({ value, without, excess, pull }, own, folds, quantiles, [below, above]) {
    const A = without.length;
    if (A < 2 || Number.isNaN(value)) return { value, se: NaN, low: NaN, high: NaN };
    const apart = without.map((r) => scaled(orZero(r)) - scaled(value));
    const power = (k) => apart.reduce((sum, d) => sum + d ** k, 0);
    const [squares, fourth] = [power(2), power(4)];
    const share = own > 0 ? Math.min(1, Math.max(0, value) / own) ** 2 : 0;
    const inflation = 1 + (folds / Math.max(folds - 1, 1)) * (1 - share);
    const sd = Math.sqrt(((A - 1) / A) * squares * ((A + 1) / A) * inflation);
    const count = Math.min(fourth > 0 ? (3 * squares ** 2) / fourth : 2, A / (1 + (excess * A) / 2));
    const t = quantiles[Math.floor(Math.min(Math.max(count - 1 + 1e-9, 1), Math.max(A - 1, 1)))];
    const left = 1 - value ** 2;
    const tails = Math.min(left > 0 ? (pull / left) ** 2 : 0, TAILS * sd ** 2);
    return {
      value,
      se: Math.min(1, sd * left),
      low: Math.min(value, learned(Math.tanh(scaled(value) - t * Math.sqrt(sd ** 2 + tails)), below > 1 ? share : Math.sqrt(share), below)),
      high: Math.max(value, learned(Math.tanh(scaled(value) + t * sd), share, above)),
    };
  }

  // Rows of the parts of a fold, E[z~ z~'] over all of them (its lower triangle), and the variances in every part
  function secondMoment(fold, regime, lam) {
    const { parts, unit, fixed } = foldProducts(fold, regime);
    const w = fixed ? 1 : weightOf(regime, lam);
    const at = ([none, one, two], p, q) => (1 - w) ** 2 * none[p][q] + w * (1 - w) * one[p][q] + w ** 2 * two[p][q];
    const norms = fold.M.map((_, p) => Math.sqrt(at(unit, p, p)));
    const n = parts.map((part) => part.n);
    const total = n.reduce((a, b) => a + b, 0);
    const variances = parts.map(({ all }) => norms.map((norm, p) => at(all, p, p) / norm ** 2));
    const entry = (p, q) => parts.reduce((sum, { n: m, all }) => sum + m * at(all, p, q), 0) / total / norms[p] / norms[q];
    const lower = fold.M.map((_, p) => fold.M.slice(0, p + 1).map((__, q) => entry(p, q)));
    return { n, total, lower, variances };
  }

  const inverseRoot = (variance) => (variance > 0 ? 1 / Math.sqrt(variance) : 0);

  // The sum over p != q of f(entry, p, q), for a symmetric matrix given by its lower triangle
  const offDiagonal = (lower, f) =>
    lower.reduce((sum, row, p) => sum + row.slice(0, p).reduce((part, entry, q) => part + 2 * f(entry, p, q), 0), 0);

  // heldout.coupling_of_rows
  function couplingOfRows({ total, lower }) {
    const scale = lower.map((row, p) => inverseRoot(row[p]));
    const rows = Math.max(total, 2);
    return offDiagonal(lower, (entry, p, q) => {
      const rest = 1 - (entry * scale[p] * scale[q]) ** 2;
      return (1 - (rest * rows) / (rows - 1)) * (1 + (2 * rest) / (rows + 2));
    });
  }

  const perGroup = (n) => n.reduce((sum, m) => sum + m * m, 0) / n.reduce((a, b) => a + b, 0) ** 2;

  // heldout._variances: of the dimensions in every fold
  function foldVariances(found) {
    const rows = found.reduce((sum, { total }) => sum + total, 0);
    const ofAll = found[0].lower.map((_, p) => found.reduce((sum, { total, lower }) => sum + total * lower[p][p], 0) / rows);
    const over = (variance, p) => (ofAll[p] > 0 ? variance / ofAll[p] : 0);
    const inFolds = found.map(({ lower }) => lower.map((row, p) => over(row[p], p)));
    const squares = (differences) => differences.flat(2).reduce((sum, d) => sum + d * d, 0);
    const spread = squares(found.map(({ variances }, f) => variances.map((row) => row.map((v, p) => over(v, p) - inFolds[f][p]))));
    const freedom = found.reduce((sum, { n }) => sum + n.length - 1, 0) * ofAll.length;
    const chance = freedom > 0 ? (2 * spread * mean(found.map(({ n }) => perGroup(n)))) / freedom : Infinity;
    const apart = squares(inFolds.map((row) => row.map((r) => r - 1))) / found.length / ofAll.length;
    const share = apart > 0 ? Math.max(0, 1 - chance / apart) : 0;
    return inFolds.map((row) => row.map((r, p) => ofAll[p] * (1 + share * (r - 1))));
  }

  // heldout.coupling_of_groups; ``own`` are the correlations on the rows of the fit
  function couplingOfGroups(found, own) {
    const variances = foldVariances(found);
    return found.map(({ n, lower }, f) => {
      const others = found.flatMap((of, i) => (i === f ? [] : of.n));
      const [out, fit] = [perGroup(n), perGroup(others.length ? others : n)];
      const scale = variances[f].map(inverseRoot);
      return offDiagonal(lower, (entry, p, q) => {
        const C = own[f][p][q];
        const D = entry * scale[p] * scale[q] - C;
        return C * C + 2 * C * D + (D * D * fit) / (out + fit);
      });
    });
  }

  // F F' scaled to correlations: those of the rows a fit was fitted to
  function ownCorrelations(of, regime, lam) {
    const F = mixing(of, regime, lam);
    return multiply(F, transpose(F));
  }

  function couplingOnNewRows(facts, regime, lam) {
    const found = facts.folds.map((fold) => secondMoment(fold, regime, lam));
    const own = facts.folds.map((fold) => ownCorrelations(fold, regime, lam));
    const leftOut = facts.groups !== null ? couplingOfGroups(found, own) : found.map(couplingOfRows);
    const all = found.reduce((sum, { total }) => sum + total, 0);
    const spare = facts.groups !== null ? 1 : Math.max(0, 1 - facts.columns / all);
    const beyond = facts.folds.reduce((sum, fold, i) => {
      const { total: n } = found[i];
      return sum + (n / all) * (leftOut[i] - coupling(own[i])) * (1 - (n / (fold.n_train + n)) * spare);
    }, 0);
    return Math.max(0, coupling(ownCorrelations(facts.fitted, regime, lam)) + beyond);
  }

  function heldOut(facts, regime, lam) {
    const parts = facts.folds.flatMap((fold) => pairSums(fold, regime, lam));
    const own = transpose(facts.folds.map((fold) => ownAlignment(fold, regime, lam))).map(mean);
    const add = (a, b, sign) => a.map((value, i) => value + sign * b[i]);
    const each = facts.covariates.map((_, p) => {
      const itsParts = parts.map((part) => part[p]);
      const total = itsParts.reduce((sum, part) => add(sum, part, 1), [0, 0, 0, 0, 0, 0]);
      const [value, excess] = [pooled(total), excessKurtosis(itsParts, facts.groups !== null)];
      const without = itsParts.map((part) => pooled(add(total, part, -1)));
      return { value, without, excess, pull: (Math.abs(value) / 2) * Math.sqrt(excess) };
    });
    const [k, quantiles, gain] = [facts.folds.length, facts.quantiles, facts.gain];
    const found = each.map((one, p) =>
      estimated({ ...one, without: one.without.filter((_, a) => parts[a][p][0] > 0) }, own[p], k, quantiles, gain));
    const known = each.map(({ value }, p) => p).filter((p) => !Number.isNaN(each[p].value));
    const meanWithout = parts
      .map((part, a) => ({ part, value: mean(known.map((p) => orZero(each[p].without[a]))) }))
      .filter(({ part }) => known.some((p) => part[p][0] > 0))
      .map(({ value }) => value);
    const over = (field) => mean(known.map((p) => each[p][field]));
    const together = { value: mean(each.map(({ value }) => value)), without: meanWithout };
    const middle = estimated({ ...together, excess: over("excess"), pull: over("pull") }, mean(known.map((p) => own[p])), k, quantiles, gain);
    return {
      mean: middle.value,
      meanLow: middle.low,
      meanHigh: middle.high,
      alignment: found.map(({ value }) => value),
      se: found.map(({ se }) => se),
      low: found.map(({ low }) => low),
      high: found.map(({ high }) => high),
      coupling: couplingOnNewRows(facts, regime, lam),
    };
  }

  // Informed factors before any regime are no function of T_0 z, and have moments of their own.
  const ofRegime = (facts, regime) => (regime === "as fitted" ? { ...facts, ...facts.stage_1 } : facts);

  // A point of the frontier.
  function point(all, regime, lam) {
    const facts = ofRegime(all, regime);
    const judged = facts.folds.length > 0 && (regime !== "exclusive" || facts.held_out_exclusive);
    return {
      alignment: alignments(facts.fitted, regime, lam),
      coupling: coupling(among(facts.fitted, regime, lam)),
      heldOut: judged ? heldOut(facts, regime, lam) : null,
    };
  }

  // All numbers of one setting.
  function measured(all, regime, lam) {
    const facts = ofRegime(all, regime);
    return {
      ...point(all, regime, lam),
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

  // Share of a view's variance by each factor: see facts.all_shares.
  function allShares(view, fitted, regime, lam) {
    if (view.live === null) return view.shares;
    return regime === "as fitted" ? view.stage_1 : [...shares(view.live, mixing(fitted, regime, lam)), ...view.free];
  }

  // The pairs of a symmetric matrix, the largest in absolute value first.
  function pairs(matrix) {
    const found = [];
    matrix.forEach((row, q) => {
      for (let p = 0; p < q; p += 1) if (!Number.isNaN(row[p])) found.push({ value: row[p], p, q });
    });
    return found.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  }

  return { FIXED, point, measured, mixing, lamWithin, allShares, mean, pairs };
})();

if (typeof module !== "undefined") module.exports = arithmetic;
