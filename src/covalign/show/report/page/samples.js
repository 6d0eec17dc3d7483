// Samples of a model: where they are, how much they count, and what is missing.
"use strict";

(() => {
  const { byId, roomOf, known, shown, quoted, draw, write, canvas, labelHeight, axes, padded, table, options } = drawing;
  const { facts, P } = live;
  const { views, samples, weights, missing } = facts.factors;
  // Okabe and Ito's colours, distinct for colour-blind readers; then a scale of even brightness.
  const LEVELS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];
  const [OTHER, PLAIN] = ["#8a8f98", "#5b8db8"];
  const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

  // -- where they are -------------------------------------------------------------------------------------------------

  function mix(share) {
    const at = Math.max(0, Math.min(1, share)) * (SCALE.length - 1);
    const i = Math.min(SCALE.length - 2, Math.floor(at));
    return `rgb(${SCALE[i].map((low, c) => Math.round(low + (at - i) * (SCALE[i + 1][c] - low))).join(",")})`;
  }

  // How a covariate colours samples: a colour for each value, and the key. Beyond seven levels, rare ones share a colour.
  function colouring(one) {
    if (one === undefined) return { of: () => PLAIN, key: [], said: () => "" };
    const there = one.values.filter(known);
    if (!one.levels) {
      const [low, high] = there.length ? [Math.min(...there), Math.max(...there)] : [0, 1];
      const bar = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(mix).join(",")})`;
      return { of: (value) => mix((value - low) / (high - low || 1)), key: [[bar, `${quoted(one.name)}, ${+low.toPrecision(3)} to ${+high.toPrecision(3)}`]], said: String };
    }
    const count = (level) => there.filter((value) => value === level).length;
    const levels = one.levels.map((_, level) => level);
    const many = levels.length > LEVELS.length;
    const shown = many ? levels.sort((a, b) => count(b) - count(a) || a - b).slice(0, LEVELS.length - 1) : levels;
    const key = shown.map((level, i) => [LEVELS[i], one.levels[level]]);
    if (many) key.push([OTHER, `${one.levels.length - shown.length} other levels`]);
    return { of: (value) => LEVELS[shown.indexOf(value)] || OTHER, key, said: (value) => quoted(one.levels[value]) };
  }

  function scatterFrame() {
    const [all, colours] = [[...facts.covariates, ...samples.free], samples.colours];
    const [across, up] = [options("scatter-x", all, 0), options("scatter-y", all, Math.min(1, all.length - 1))];
    const colour = options("scatter-colour", [...colours.map((one) => one.name), "none"], colours.length);
    const n = samples.informed.length;
    byId("scatter-said").textContent = `${n < samples.of ? `${n} of ${samples.of} samples, evenly spread over the table` : `All ${n} samples`}. ${facts.regime_from === "features" ? "Factors follow the chosen regime. Features alone place these samples, as they would place new ones."
      : "Informed factors follow the chosen regime. They know the covariates of these samples; factors of new samples do not."}`;

    // F: null before any regime
    function coordinate(which, F) {
      const { informed, free_values } = F === null ? samples.stage_1 : samples;
      if (which >= P) return free_values.map((row) => row[which - P]);
      const values = informed.map((row) => (F === null ? row[which] : row.reduce((sum, value, q) => sum + value * F[which][q], 0)));
      const sd = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / n) || 1;
      return values.map((value) => value / sd);
    }

    // A colour that tells more than the axes do, until another one is chosen.
    let byHand = false;
    function suggest() {
      if (byHand) return;
      const drawn = [Number(across.value), Number(up.value)];
      const at = colours.findIndex(({ columns }) => !columns.some((p) => drawn.includes(p)));
      colour.value = at < 0 ? colours.length : at;
    }

    function paint(one) {
      const { of, key, said } = colouring(one);
      dots.forEach((dot, s) => {
        const value = one ? one.values[s] : 0;
        dot.setAttribute("class", known(value) ? "sample" : "sample unknown");
        dot.style.fill = known(value) ? of(value) : "";
        dot.said = () => `${quoted(samples.names[s])}${one ? `: ${known(value) ? said(value) : "missing"}` : ""}`;
      });
      byId("scatter-key").replaceChildren();
      for (const [style, text] of [...key, ...(one && one.values.some((value) => value === null) ? [["transparent", "missing"]] : [])]) {
        const item = write(byId("scatter-key"), "span");
        write(item, "i").style.background = style;
        item.append(text);
      }
    }

    // The dots move with the regime: axes are drawn again, dots are moved, and recoloured only when another colour is chosen.
    const svg = canvas("scatter", 1, 1);
    const frame = draw(svg, "g");
    const dots = samples.names.map(() => draw(svg, "circle", { r: n > 400 ? 3.2 : 4.5 }));
    let painted = null;
    function move(_, state) {
      suggest();
      const F = state.regime === "as fitted" ? null : arithmetic.mixing(facts.fitted, state.regime, state.lam);
      const [i, j, one] = [Number(across.value), Number(up.value), colours[Number(colour.value)]];
      const [xs, ys] = [coordinate(i, F), coordinate(j, F)];
      const W = roomOf("scatter", 1080);
      const H = Math.min(480, Math.max(300, W * 0.75));
      const box = { W, H, left: 44 + labelHeight(all[j], H - 60), right: 14, top: 12, bottom: 32 + labelHeight(all[i], W - 72) };
      svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
      svg.setAttribute("aria-label", `Samples: ${all[i]} against ${all[j]}${one ? `, coloured by ${one.name}` : ""}`);
      const limits = (values) => padded(Math.min(...values), Math.max(...values), 0.04);
      frame.replaceChildren();
      const { x, y } = axes(frame, box, limits(xs), limits(ys), [all[i], all[j]], [W > 600 ? 8 : 5, 6]);
      dots.forEach((dot, s) => {
        dot.setAttribute("cx", x(xs[s]).toFixed(1));
        dot.setAttribute("cy", y(ys[s]).toFixed(1));
      });
      const chosen = colour.value;
      if (painted !== chosen) paint(one);
      painted = chosen;
    }
    colour.addEventListener("input", () => { byHand = true; });
    for (const select of [across, up, colour]) select.addEventListener("change", () => move(null, live.state));
    live.onChange(move);
  }

  if (samples === null) {
    byId("scatter-choices").hidden = true;
    byId("scatter").remove();
    byId("scatter-said").textContent = "The model does not hold its rows (they were read in chunks), so no samples are drawn.";
  } else {
    scatterFrame();
  }

  // -- how much they count --------------------------------------------------------------------------------------------

  if (weights !== null) {
    byId("weights").hidden = false;
    const listed = weights.samples;
    byId("weights-said").textContent = `Noise has heavy tails here: a sample that is far off in a view counts less there (1 is a usual sample). ${
      weights.count ? `${weights.count} of ${weights.of} count less than ${weights.below} in a view.` : `No sample counts less than ${weights.below}.`}`;
    if (listed.length) table("weights-table", ["sample", "view", "weight"], listed.map(({ name, view, weight }) => [name, view, String(+weight.toPrecision(2))]));
  }
  byId("gaps").classList.toggle("wide", weights === null);

  // -- gaps -----------------------------------------------------------------------------------------------------------

  (() => {
    const place = byId("missing");
    const n = facts.rows;
    const part = (bar, kind, count, text) => {
      if (!count) return;
      const piece = write(bar, "span", null, { class: kind });
      piece.style.flexGrow = count;
      piece.said = () => `${text}: ${count} of ${n} samples`;
    };
    for (const one of missing.views) {
      write(place, "p", `${quoted(one.name)}: ${shown(100 * one.observed, one.observed > 0.9995 ? 0 : 1)} % of cells observed${one.absent ? `, ${one.absent} samples without this view` : ""}`, { class: "said" });
      const bar = write(place, "div", null, { class: "stack" });
      part(bar, "whole", one.whole, "complete");
      part(bar, "partly", one.partly, "with gaps");
      part(bar, "absent", one.absent, "not measured");
    }
    if (missing.together.length > 1) {
      const texts = missing.together.slice(0, 6).map(({ has, samples: count }) =>
        `${count} have ${has.every(Boolean) ? "every view" : has.some(Boolean) ? views.filter((_, i) => has[i]).map((one) => quoted(one.name)).join(" + ") : "no view"}`);
      write(place, "p", `Of ${n} samples ${texts.join("; ")}${missing.together.length > 6 ? "; and others" : ""}.`);
    }
    const gone = facts.covariates.map((name, p) => [name, missing.covariates[p]]).filter(([, count]) => count > 0);
    write(place, "p", gone.length ? `Samples with unknown covariates: ${gone.slice(0, 8).map(([name, count]) => `${quoted(name)} in ${count}`).join(", ")}${gone.length > 8 ? ` and ${gone.length - 8} more` : ""}.` : "Every covariate is known for every sample.");
    if (facts.confounders.length) write(place, "p", `Confounders regressed out of views and covariates: ${facts.confounders.map(quoted).join(", ")}.`);
  })();
})();
