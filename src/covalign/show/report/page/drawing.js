// Drawing: elements, scales, labels, tables, matrices that are drawn once and then only recoloured, and one tooltip.
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
  const quoted = (name) => (/\s/.test(name) ? `“${isolated(name)}”` : isolated(name));

  function made(element, attributes, text, parent) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== null) element.textContent = text;
    parent.appendChild(element);
    return element;
  }
  const draw = (parent, tag, attributes = {}, text = null) =>
    made(document.createElementNS(SVG, tag), attributes, text, parent);
  const write = (parent, tag, text = null, attributes = {}) => made(document.createElement(tag), attributes, text, parent);

  function canvas(id, width, height, label = "") {
    const svg = typeof id === "string" ? byId(id) : id;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (label) svg.setAttribute("aria-label", label);
    return svg;
  }

  // The available width, so that letters keep their size on a phone.
  const roomOf = (id, most) => Math.max(260, Math.min(most, byId(id).parentElement.clientWidth - 36));

  // A name on as many lines as it needs, at spaces where it has some.
  const pen = document.createElement("canvas").getContext("2d");
  const { fontFamily } = getComputedStyle(document.body);
  function wrapped(name, room, most = 4) {
    pen.font = `12px ${fontFamily}`;
    const fits = (text) => pen.measureText(text).width <= room;
    const lines = [""];
    for (const word of name.split(/(?<=[\s_.:/-])/u)) {
      if (lines[lines.length - 1] && !fits(lines[lines.length - 1] + word)) lines.push("");
      for (const letter of word) {
        if (lines[lines.length - 1] && !fits(lines[lines.length - 1] + letter)) lines.push("");
        lines[lines.length - 1] += letter;
      }
    }
    return lines.length <= most ? lines : [...lines.slice(0, most - 1), `${lines[most - 1]}…`];
  }

  function label(parent, attributes, name, room) {
    const lines = wrapped(name, room);
    const text = draw(parent, "text", { class: "label", "text-anchor": "middle", ...attributes });
    lines.forEach((line, i) => draw(text, "tspan", { x: attributes.x, dy: i ? 14 : 0 }, line));
    return text;
  }
  // The room that a name takes below or beside a plot.
  const labelHeight = (name, room) => 14 * wrapped(name, room).length;

  // -- tables ---------------------------------------------------------------------------------------------------------

  // Text that may break after a mark within a name (er_status), and not only anywhere.
  function breaking(cell, text) {
    text.split(/(?<=[\p{L}\p{N}][_.:/-])(?=\p{L})/u).forEach((part, i) => {
      if (i) cell.appendChild(document.createElement("wbr"));
      cell.append(part);
    });
    return cell;
  }

  // A cell of text that may break anywhere, but not within a word of usual length.
  function words(parent, tag, text, attributes = {}) {
    const cell = breaking(write(parent, tag, null, attributes), text);
    const longest = Math.max(...text.split(/[\s_.:/-]/u).map((word) => word.length));
    cell.style.minWidth = `${Math.min(19, Math.ceil(1.2 * longest) + 2)}ch`;
    return cell;
  }

  // A table of text; the first column names the rows.
  function table(id, head, rows) {
    const place = typeof id === "string" ? byId(id) : id;
    place.replaceChildren();
    const above = write(write(place, "thead"), "tr");
    for (const text of head) write(above, "th", text, { scope: "col" });
    const body = write(place, "tbody");
    for (const cells of rows) {
      const row = write(body, "tr");
      cells.forEach((text, i) => (i ? words(row, "td", text) : words(row, "th", text, { scope: "row" })));
    }
    return place;
  }

  function options(id, items, chosen) {
    const select = byId(id);
    items.forEach((item, i) => write(select, "option", item, { value: i, ...(i === chosen ? { selected: "" } : {}) }));
    return select;
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
    label(svg, { x: (left + W - right) / 2, y: H - bottom + 36 }, across, W - left - right);
    const middle = (H - bottom + top) / 2;
    label(svg, { x: 13, y: middle, transform: `rotate(-90 13 ${middle})` }, up, H - top - bottom);
    return { x, y };
  }

  const padded = (low, high, share = 0.08) => {
    const spread = high - low || Math.abs(high) * 0.1 || 0.1;
    return [low - share * spread, high + share * spread];
  };

  // Ends of an axis that is at least so long.
  const atLeast = (low, high, least, share) => {
    const missing = Math.max(0, least - (high - low)) / 2;
    const margin = share * Math.max(high - low, least);
    return [low - missing - margin, high + missing + margin];
  };

  // -- matrices -------------------------------------------------------------------------------------------------------

  const look = (value, signed, most) => ({
    strength: known(value) ? Math.min(1, Math.abs(value) / most) : 0,
    kind: !known(value) ? "cell unknown" : !signed ? "cell share" : value < 0 ? "cell negative" : "cell positive",
  });

  // A matrix as a table: names in full, a number and a colour in each cell. ``signed`` ones have two colours, others one.
  // Returns a function that fills it in. ``notes`` are further columns of text: their heads, and functions of the row.
  function grid(id, rows, columns, label, { signed = true, most = 1, head = "", upright = false, notes = [] } = {}) {
    const place = byId(id).tagName === "TABLE" ? byId(id) : write(byId(id), "table");
    place.classList.add("matrix");
    write(place, "caption", label, { class: "unseen" });
    const above = write(write(place, "thead"), "tr");
    write(above, head ? "th" : "td", head, head ? { scope: "col" } : {});
    for (const name of columns) {
      if (upright) words(above, "th", name, { scope: "col" });
      else breaking(write(write(above, "th", null, { scope: "col" }), "span", null, { class: "turned" }), name);
    }
    for (const [name] of notes) words(above, "th", name, { scope: "col", class: "note" });
    const body = write(place, "tbody");
    const all = rows.map((name, p) => {
      const row = write(body, "tr");
      words(row, "th", name, { scope: "row" });
      const cells = columns.map(() => write(row, "td"));
      for (const [, of] of notes) words(row, "td", of(p), { class: "note" });
      return cells;
    });
    return (matrix) => all.forEach((cells, p) => cells.forEach((cell, q) => {
      const { strength, kind } = look(matrix[p][q], signed, most);
      cell.className = kind;
      cell.style.setProperty("--strength", strength.toFixed(3));
      cell.textContent = shown(matrix[p][q]).replace("0.", ".");
      cell.said = () => `${isolated(rows[p])}, ${isolated(columns[q])}: ${shown(matrix[p][q], 3)}`;
    }));
  }

  // Many cells: one path for all cells of the same shade. Thousands of elements would be slow to restyle.
  const SHADES = 64;
  function mosaic(id, rows, columns, label) {
    const [height, width] = [rows.length, columns.length];
    const size = Math.max(6, Math.min(26, 520 / Math.max(height, width)));
    const [left, top] = [30, 22];
    const svg = canvas(draw(byId(id), "svg", { role: "img", class: "heat" }), left + size * width + 2, top + size * height + 2, label);
    svg.style.maxWidth = `${Math.round(left + size * width + 2)}px`;
    const place = (p, q) => ({ x: left + size * q, y: top + size * p });
    const said = (p, q, value) => `${isolated(rows[p])}, ${isolated(columns[q])}: ${shown(value, 3)}`;
    const every = [1, 2, 5, 10, 20, 50, 100].find((step) => step * size >= 20);
    for (let p = 0; p < Math.max(height, width); p += 1) {
      if ((p + 1) % every && every > 1) continue;
      const at = place(p, p);
      if (p < height) draw(svg, "text", { x: left - 6, y: at.y + size / 2 + 4, class: "tick", "text-anchor": "end" }, String(p + 1));
      if (p < width) draw(svg, "text", { x: at.x + size / 2, y: top - 7, class: "tick", "text-anchor": "middle" }, String(p + 1));
    }
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
        const { strength, kind } = look(matrix[p][q], true, 1);
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

  return { byId, roomOf, known, shown, plain, lamShown, quoted, draw, write, canvas, labelHeight, words, table, options, ticks, axes, padded, atLeast, grid, mosaic };
})();
