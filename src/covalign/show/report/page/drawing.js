// Drawing: elements, scales, labels, a heat map that is drawn once and then only recoloured, and one tooltip.
// Names are only ever set as text, so nothing in them is markup.
"use strict";

const drawing = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
  const shown = (value, digits = 2) => (known(value) ? value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1") : "–");
  const plain = (value) => `${+value.toPrecision(3)}`;

  // Two digits on the slider's grid, elsewhere enough digits to distinguish lambda from 0 and 1.
  function lamShown(lam) {
    let digits = Math.abs(100 * lam - Math.round(100 * lam)) < 1e-9 ? 2 : 3;
    while (digits > 2 && digits < 12 && [0, 1].includes(Number(lam.toFixed(digits)))) digits += 1;
    return `λ = ${lam.toFixed(digits)}`;
  }

  // A name within a sentence. Right-to-left names are isolated, so that numbers beside them keep their order.
  const TURNS = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
  const isolated = (name) => (TURNS.test(name) ? `\u2068${name}\u2069` : name);
  const quoted = (name) => (/\s/.test(name) ? `“${isolated(short(name, 80))}”` : isolated(short(name, 80)));

  function made(element, attributes, text, parent) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== null) element.textContent = text;
    parent.appendChild(element);
    return element;
  }
  const draw = (parent, tag, attributes = {}, text = null) =>
    made(document.createElementNS(SVG, tag), attributes, text, parent);
  const write = (parent, tag, text = null, attributes = {}) => made(document.createElement(tag), attributes, text, parent);

  function canvas(id, width, height, label) {
    const svg = typeof id === "string" ? byId(id) : id;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", label);
    return svg;
  }

  // The available width, so that letters keep their size on a phone.
  const roomOf = (id, most) => Math.max(260, Math.min(most, byId(id).parentElement.clientWidth - 36));

  // Long names keep their beginning and their end: names of columns often differ only in the last letters.
  function short(name, most) {
    const letters = [...name];
    if (letters.length <= most) return name;
    const tail = Math.floor((most - 1) * 0.4);
    return `${letters.slice(0, most - 1 - tail).join("")}…${tail ? letters.slice(-tail).join("") : ""}`;
  }

  // Widths of letters differ between fonts: names are measured, and shortened until they fit.
  const pen = document.createElement("canvas").getContext("2d");
  const { fontFamily } = getComputedStyle(document.body);
  function widthOf(text, size = 12) {
    pen.font = `${size}px ${fontFamily}`;
    return pen.measureText(text).width;
  }
  function fit(name, most, room, size = 12) {
    let letters = most;
    while (letters > 2 && widthOf(short(name, letters), size) > room) letters -= 1;
    return short(name, letters);
  }

  function named(parent, attributes, name, text) {
    const label = draw(parent, "text", attributes, text);
    if (text !== name) label.said = () => name;
    return label;
  }

  function ticks(low, high, count) {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw * (1 - 1e-9));
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push(i * step);
    return { at: found, text: (value) => value.toFixed(Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)))) };
  }

  // Axes of a plot in a box; returns the two scales.
  function axes(svg, box, [x0, x1], [y0, y1], [across, up], counts = [5, 5]) {
    const { W, H, left, right, top, bottom } = box;
    const x = (value) => left + ((value - x0) / (x1 - x0)) * (W - left - right);
    const y = (value) => H - bottom - ((value - y0) / (y1 - y0)) * (H - top - bottom);
    const [xs, ys] = [ticks(x0, x1, counts[0]), ticks(y0, y1, counts[1])];
    for (const tick of xs.at) {
      draw(svg, "line", { x1: x(tick), x2: x(tick), y1: top, y2: H - bottom, class: "grid" });
      draw(svg, "text", { x: x(tick), y: H - bottom + 17, class: "tick", "text-anchor": "middle" }, xs.text(tick));
    }
    for (const tick of ys.at) {
      draw(svg, "line", { x1: left, x2: W - right, y1: y(tick), y2: y(tick), class: "grid" });
      draw(svg, "text", { x: left - 7, y: y(tick) + 4, class: "tick", "text-anchor": "end" }, ys.text(tick));
    }
    draw(svg, "text", { x: (left + W - right) / 2, y: H - 6, class: "label", "text-anchor": "middle" }, across);
    const middle = (H - bottom + top) / 2;
    draw(svg, "text", { x: 13, y: middle, class: "label", "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }, up);
    return { x, y };
  }

  const padded = (low, high, share = 0.08) => {
    const spread = high - low || Math.abs(high) * 0.1 || 0.1;
    return [low - share * spread, high + share * spread];
  };

  // A matrix of numbers; returns a function that recolours it. ``signed`` ones have two colours, others one.
  function heat(id, rows, columns, label, { signed = true, digits = 2, most = 1, cell = 50 } = {}) {
    const many = Math.max(rows.length, columns.length);
    const size = Math.max(7, Math.min(cell, 420 / many));
    const [font, tiny] = size < 11 ? [8, " tiny"] : [12, ""];
    const labels = [[rows, 18], [columns, 16]].map(([list, limit]) => list.map((name) => fit(name, limit, limit * 0.55 * font, font)));
    const [long, high] = labels.map((list) => Math.max(font, ...list.map((text) => widthOf(text, font))));
    const [left, top] = [long + 12, high * 0.87 + 14];
    const over = high * 0.5 + 8;  // rotated names extend to the right
    const svg = canvas(id, left + size * columns.length + over, top + size * rows.length + 6, label);
    svg.style.maxWidth = `${Math.round((left + size * columns.length + over) * (many > 30 ? 1.25 : 1.15))}px`;
    const every = Math.ceil(9 / size);  // names that do not fit are in the tooltip
    columns.forEach((name, q) => {
      if (q % every) return;
      const [a, b] = [left + size * (q + 0.5) + 3, top - 6];
      named(svg, { x: a, y: b, class: `name${tiny}`, transform: `rotate(-60 ${a} ${b})` }, name, labels[1][q]);
    });
    rows.forEach((name, p) => {
      const beside = { x: left - 7, y: top + size * (p + 0.5) + (tiny ? 3 : 4), class: `name${tiny}`, "text-anchor": "end" };
      if (p % every === 0) named(svg, beside, name, labels[0][p]);
    });
    const place = (p, q) => ({ x: left + size * q, y: top + size * p });
    const look = (value) => ({
      strength: known(value) ? Math.min(1, Math.abs(value) / most) : 0,
      kind: !known(value) ? "cell unknown" : !signed ? "cell share" : value < 0 ? "cell negative" : "cell positive",
    });
    const said = (p, q, value) => `${isolated(rows[p])}, ${isolated(columns[q])}: ${shown(value, digits + 1)}`;
    const shape = [rows.length, columns.length];
    return many <= 12 ? cells(svg, shape, size, place, look, said, digits) : mosaic(svg, shape, size, place, look, said);
  }

  // Few cells: each is an element with its number written in it.
  function cells(svg, [height, width], size, place, look, said, digits) {
    const all = Array.from({ length: height }, (_, p) => Array.from({ length: width }, (__, q) => {
      const { x, y } = place(p, q);
      const rect = draw(svg, "rect", { x, y, width: size - 1, height: size - 1, rx: Math.min(3, size / 8) });
      const text = draw(svg, "text", { x: x + size / 2 - 0.5, y: y + size / 2 + 4, "text-anchor": "middle" });
      return { rect, text };
    }));
    return (matrix) => all.forEach((row, p) => row.forEach(({ rect, text }, q) => {
      const value = matrix[p][q];
      const { strength, kind } = look(value);
      rect.setAttribute("class", kind);
      rect.style.fillOpacity = strength.toFixed(3);
      rect.said = () => said(p, q, value);
      text.textContent = shown(value, digits).replace("0.", ".");
      text.setAttribute("class", strength > 0.55 ? "value strong" : "value");
    }));
  }

  // Many cells: one path for all cells of the same shade. Thousands of elements would be slow to restyle.
  const SHADES = 64;
  function mosaic(svg, [height, width], size, place, look, said) {
    const small = size < 14;  // outlines would hide the colours
    svg.classList.toggle("bare", small);
    const side = (size - (small ? 0.4 : 1)).toFixed(2);
    const squares = Array.from({ length: height }, (_, p) => Array.from({ length: width }, (__, q) => {
      const { x, y } = place(p, q);
      return `M${x.toFixed(2)} ${y.toFixed(2)}h${side}v${side}h-${side}z`;
    }));
    if (!small) draw(svg, "path", { d: squares.flat().join(""), class: "cell" });
    const paths = new Map();
    let now = null;
    const { x, y } = place(0, 0);
    const over = draw(svg, "rect", { x, y, width: size * width, height: size * height, class: small ? "over framed" : "over" });
    over.said = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(over.getScreenCTM().inverse());
      const within = (value, count) => Math.max(0, Math.min(count - 1, Math.floor(value / size)));
      const [p, q] = [within(at.y - y, height), within(at.x - x, width)];
      return said(p, q, now[p][q]);
    };
    return (matrix) => {
      now = matrix;
      const parts = new Map();
      squares.forEach((row, p) => row.forEach((square, q) => {
        const { strength, kind } = look(matrix[p][q]);
        const shade = Math.round(strength * SHADES);
        const name = `${kind} ${shade}`;
        if (!parts.has(name)) parts.set(name, { kind, shade, squares: [] });
        parts.get(name).squares.push(square);
      }));
      for (const [name, path] of paths) if (!parts.has(name)) path.setAttribute("d", "");
      for (const [name, { kind, shade, squares: these }] of parts) {
        if (!paths.has(name)) {
          paths.set(name, draw(svg, "path", { class: kind, "fill-opacity": shade / SHADES }));
          svg.append(over);
        }
        paths.get(name).setAttribute("d", these.join(""));
      }
    };
  }

  // One tooltip for all elements with a text (``said``, a function), by pointer and by touch.
  const tip = byId("tip");
  document.addEventListener("pointermove", (event) => {
    const said = event.target.said;
    tip.classList.toggle("seen", said !== undefined);
    if (said === undefined) return;
    tip.textContent = said(event);
    const { width, height } = tip.getBoundingClientRect();
    const [right, bottom] = [document.documentElement.clientWidth, window.innerHeight];
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, right - width - 4))}px`;
    tip.style.top = `${event.clientY + 16 + height > bottom ? event.clientY - height - 8 : event.clientY + 16}px`;
  });
  document.addEventListener("pointerleave", () => tip.classList.remove("seen"));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.classList.remove("seen"); });

  return { byId, roomOf, known, shown, plain, lamShown, isolated, quoted, draw, write, canvas, short, fit, named, ticks, axes, padded, heat };
})();
