// Buttons, slider, printing; then the first update.
"use strict";

(() => {
  const { byId, known, shown, lamShown } = drawing;
  const { facts, P, isModel, state, curve, corner, first, height, choose, slide } = live;

  function settingShown() {
    if (state.regime === "tunable") return lamShown(state.lam);
    return { independent: lamShown(0), strongest: lamShown(1) }[state.regime] || state.regime;
  }

  live.onChange((now) => {
    if (state.budget === null) byId("budget-said").textContent = "";
    byId("lam").value = state.lam;
    byId("lam-shown").textContent = settingShown();
    byId("lam").setAttribute("aria-valuetext", settingShown());
    byId("lam").classList.toggle("aside", state.regime in arithmetic.FIXED);
    for (const button of document.querySelectorAll("[data-regime]")) {
      button.setAttribute("aria-pressed", String(button.dataset.regime === state.regime));
    }
    const out = now.heldOut;
    byId("alignment-now").textContent = shown(height(now), 3);
    byId("held-now").textContent = out ? shown(height(out), 3) : "–";
    byId("held-limits").textContent = out && known(out.meanLow) ? `(${shown(out.meanLow, 3)} to ${shown(out.meanHigh, 3)})` : "";
    byId("coupling-now").textContent = shown(now.coupling, 3);
    announce(now);
  });

  // For screen readers, once the slider has come to rest.
  let resting = null;
  function announce(now) {
    clearTimeout(resting);
    resting = setTimeout(() => {
      byId("status").textContent = `${settingShown()}: mean alignment ${shown(height(now))} on fitted ${live.rows}, ${now.heldOut ? shown(height(now.heldOut)) : "unknown"} held out, coupling ${shown(now.coupling)}`;
    }, 700);
  }

  function within() {
    const budget = Number(byId("budget").value);
    if (!(budget >= 0) || byId("budget").value === "") return;
    const lam = arithmetic.lamWithin(facts, budget);
    const least = first.coupling;
    slide(lam, budget);
    byId("budget-said").textContent = lam === 1 ? "Even the strongest regime stays within this limit."
      : lam === 0 && least > budget + 1e-9 ? `No λ stays within this limit: the coupling is ${shown(least, 3)} even for λ = 0.` : "";
  }

  byId("lam").addEventListener("input", (event) => slide(Number(event.target.value)));
  byId("independent").addEventListener("click", () => slide(0));
  byId("strongest").addEventListener("click", () => slide(1));
  byId("as-fitted").hidden = !isModel;
  byId("as-fitted").addEventListener("click", () => choose("as fitted", state.lam));
  byId("exact").hidden = facts.limits === null;
  byId("exact").addEventListener("click", () => choose("exact", state.lam));
  const exclusive = byId("exclusive");
  if (corner) {
    exclusive.addEventListener("click", () => choose("exclusive", state.lam));
  } else {
    exclusive.disabled = true;
    byId("why-not").textContent = `There is no exclusive regime: ${facts.why_no_exclusive}`;
  }
  byId("budget").value = +curve[Math.floor(curve.length / 2)].coupling.toPrecision(2);
  if (P === 1) byId("within").hidden = true;
  byId("within").addEventListener("submit", (event) => {
    event.preventDefault();
    within();
  });
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(byId("code").textContent);
      byId("copy").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(byId("code"));
      byId("copy").textContent = "Press Ctrl-C";
    }
    setTimeout(() => { byId("copy").textContent = "Copy"; }, 1500);
  });

  // Paper has nothing to unfold.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of folded) one.open = false; });

  if (isModel) for (const word of document.querySelectorAll("[data-model]")) word.textContent = word.dataset.model;
  document.documentElement.classList.add("live");  // now there is a width to fill
  live.update();
  let wide = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === wide) return;  // the bars of a phone's browser appear and disappear
    wide = window.innerWidth;
    frontier.redraw();
    live.update();
  });
})();
