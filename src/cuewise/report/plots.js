// Draws the report's figures as SVG from the data block of the page; all text goes in as text nodes, never as markup.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const figures = JSON.parse(document.getElementById("report-data").textContent).figures;
  const hiddenModels = new Set();
  const DASHES = ["", "7 4", "2 4", "9 3 2 3", "4 2", "1 3"];

  const svg = (name, attributes, parent) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (parent) parent.appendChild(node);
    return node;
  };
  const html = (name, className, text, parent) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const nameOf = (s) => [s.model, s.label].filter(Boolean).join(" · ") || "value";
  const isNumber = (v) => typeof v === "number" && Number.isFinite(v);
  const say = (v) => {
    if (v === null || v === undefined) return "—";
    if (typeof v === "string") return v;
    const size = Math.abs(v);
    if (size === 0) return "0";
    if (size >= 1e6 || size < 1e-4) return v.toExponential(2).replace("-", "−");
    return String(Number(v.toPrecision(size >= 1000 ? 6 : 3))).replace("-", "−");
  };

  // Round numbers between low and high, about `count` of them.
  const ticks = (low, high, count) => {
    const raw = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) || power;
    const out = [];
    for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-6; t += step) out.push(Number(t.toPrecision(12)));
    return out;
  };
  const extent = (values) => values.filter(isNumber).reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const shorten = (text, pixels) => {
    const most = Math.max(3, Math.floor(pixels / 6.6));
    return text.length > most ? text.slice(0, most - 1) + "…" : text;
  };

  class Plot {
    constructor(holder, figure) {
      Object.assign(this, { holder, figure, hidden: new Set(), cursor: -1, width: 0 });
      // With one model its series differ in colour; with several the model gives the colour, the series the dash.
      this.byModel = new Set(figure.series.map((s) => s.model)).size > 1;
      this.status = html("p", "hidden", "", holder.parentNode);
      this.status.setAttribute("aria-live", "polite");
      this.legend();
      this.draw();
      // Also fires when a closed <details> opens, where a plot has had no width before.
      new ResizeObserver(() => { if (holder.clientWidth && Math.abs(holder.clientWidth - this.width) > 1) this.draw(); }).observe(holder);
    }
    tone(series) { return "m" + ((this.byModel ? series.place : (series.label ? series.position : series.place)) % 8); }
    dash(series) { return DASHES[(this.byModel && series.label ? series.position : series.place) % DASHES.length]; }
    visible() { return this.figure.series.filter((s) => !this.hidden.has(nameOf(s)) && !hiddenModels.has(s.model)); }

    legend() {
      const place = this.holder.parentNode.querySelector(".legend");
      if (this.figure.series.length < 2 || this.figure.kind === "grid") { place.remove(); return; }
      this.figure.series.forEach((s) => {
        const name = nameOf(s);
        const button = html("button", "chip " + this.tone(s), undefined, place);
        button.type = "button";
        button.dataset.series = name;
        const key = svg("svg", { width: 22, height: 12, "aria-hidden": "true" }, button);
        if (this.figure.kind === "lines") svg("line", { x1: 1, x2: 21, y1: 6, y2: 6, class: "mark path", "stroke-dasharray": this.dash(s) }, key);
        else svg("rect", { x: 5, y: 0, width: 12, height: 12, rx: 2, class: "mark fill" }, key);
        html("bdi", "", this.byModel && !s.label ? s.model : s.label && !this.byModel ? s.label : name, button);
        button.addEventListener("click", () => {
          if (this.hidden.has(name)) this.hidden.delete(name); else this.hidden.add(name);
          this.draw();
        });
      });
      this.buttons = [...place.querySelectorAll("button")];
    }

    draw() {
      const { holder, figure } = this;
      holder.replaceChildren();
      (this.buttons || []).forEach((b, i) => {
        const s = figure.series[i];
        b.setAttribute("aria-pressed", String(!this.hidden.has(nameOf(s)) && !hiddenModels.has(s.model)));
      });
      this.width = Math.max(220, holder.clientWidth);
      this.height = Math.round(Math.min(320, Math.max(190, this.width * 0.56)));
      this.targets = [];
      const shown = this.visible();
      this.root = svg("svg", { viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height, tabindex: 0, role: "img" }, holder);
      this.root.setAttribute("aria-label", `${figure.title}: ${shown.map(nameOf).join(", ") || "nothing shown"}. Arrow keys read the values.`);
      this.readout = html("div", "readout", undefined, holder);
      this.readout.hidden = true;
      if (!shown.length) {
        svg("text", { x: this.width / 2, y: this.height / 2, "text-anchor": "middle" }, this.root).textContent = "Everything is hidden.";
        return;
      }
      if (figure.kind !== "grid") {
        this.scales(shown);
        this.axes();
      }
      this[figure.kind](shown);
      this.listen();
    }

    scales(shown) {
      const { figure } = this;
      this.words = figure.kind === "bars" || shown.some((s) => s.x.some((x) => typeof x === "string"));
      // A range that several figures share comes with the figure, so that they compare at a glance.
      const all = [...shown.flatMap((s) => [...s.y, ...(s.low || []), ...(s.high || [])]), ...(figure.range || [])];
      let [low, high] = extent(all);
      if (!isNumber(low)) [low, high] = [0, 1];
      if (figure.kind === "bars" || figure.kind === "histogram") { low = Math.min(0, low); high = Math.max(0, high); }
      else { const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1; const floor = low >= 0; low -= margin; high += margin; if (floor && low < 0) low = 0; }
      if (high === low) high = low + 1;
      const step = ticks(low, high, 5);
      if (figure.kind === "bars" || figure.kind === "histogram") {
        const gap = step[1] - step[0];
        if (high > 0) high = Math.ceil(high / gap - 1e-9) * gap;
        if (low < 0) low = Math.floor(low / gap + 1e-9) * gap;
      }
      this.yTicks = ticks(low, high, 5);
      const widest = Math.max(...this.yTicks.map((t) => say(t).length));
      this.categories = this.words ? [...new Set(shown.flatMap((s) => s.x).map(String))] : null;
      const inner = this.width - 60;
      const longest = this.words ? Math.max(...this.categories.map((c) => c.length)) * 6.6 : 0;
      this.slanted = this.words && longest > inner / this.categories.length;
      const slant = this.slanted ? Math.min(74, longest) * 0.62 : 0;
      this.height += slant;
      this.root.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      this.root.setAttribute("height", this.height);
      this.box = { left: 16 + widest * 7 + 6, right: 12, top: figure.ylabel ? 26 : 12, bottom: 26 + (figure.xlabel ? 18 : 0) + slant };
      const { box } = this;
      this.yRange = [low, high];
      this.y = (v) => this.height - box.bottom - ((v - low) / (high - low)) * (this.height - box.top - box.bottom);
      const span = this.width - box.left - box.right;
      if (this.words) {
        const slot = span / this.categories.length;
        this.slot = slot;
        const index = new Map(this.categories.map((c, i) => [c, i]));
        this.x = (v) => box.left + slot * (index.get(String(v)) + 0.5);
        return;
      }
      let [a, b] = extent(shown.flatMap((s) => [...s.x, ...(s.x2 || [])]));
      if (!isNumber(a)) [a, b] = [0, 1];
      if (a === b) { a -= 0.5; b += 0.5; }
      if (figure.kind === "scatter") { const margin = (b - a) * 0.04; a -= margin; b += margin; }
      this.xRange = [a, b];
      this.xTicks = ticks(a, b, Math.max(2, Math.floor(span / 80)));
      this.x = (v) => box.left + ((v - a) / (b - a)) * span;
    }

    axes() {
      const { box, width, height, root, figure } = this;
      const text = (x, y, words, extra = {}) => { svg("text", { x, y, ...extra }, root).textContent = words; };
      for (const t of this.yTicks) {
        svg("line", { x1: box.left, x2: width - box.right, y1: this.y(t), y2: this.y(t), class: t === 0 ? "axis" : "grid" }, root);
        text(box.left - 6, this.y(t) + 4, say(t), { "text-anchor": "end" });
      }
      const base = height - box.bottom;
      if (this.words) {
        const every = Math.max(1, Math.ceil(14 / this.slot));
        this.categories.forEach((c, i) => {
          if (i % every) return;
          if (!this.slanted) text(this.x(c), base + 16, c, { "text-anchor": "middle" });
          else text(0, 0, shorten(c, 74), { "text-anchor": "end", transform: `translate(${this.x(c) + 4} ${base + 12}) rotate(-38)` });
        });
      } else for (const t of this.xTicks) text(this.x(t), base + 16, say(t), { "text-anchor": "middle" });
      if (figure.xlabel) text((box.left + width - box.right) / 2, height - 4, shorten(figure.xlabel, width - box.left), { "text-anchor": "middle" });
      if (figure.ylabel) text(0, 12, shorten(figure.ylabel, width), {});
      if (figure.diagonal && !this.words) this.identity();
    }

    // y = x as far as both axes show it: what a figure of two shares of the same kind is read against.
    identity() {
      const a = Math.max(this.xRange[0], this.yRange[0]), b = Math.min(this.xRange[1], this.yRange[1]);
      if (a < b) svg("line", { x1: this.x(a), y1: this.y(a), x2: this.x(b), y2: this.y(b), class: "identity" }, this.root);
    }

    target(series, i, x, y, node, head) {
      const lines = [`${nameOf(series)}: ${say(series.y[i])}`];
      if (series.low && series.high && isNumber(series.low[i])) lines[0] += ` (${say(series.low[i])} to ${say(series.high[i])})`;
      this.targets.push({ x, y, node, head, lines });
    }

    whisker(series, i, x) {
      if (!series.low || !series.high || !isNumber(series.low[i]) || !isNumber(series.high[i])) return;
      const [a, b] = [this.y(series.low[i]), this.y(series.high[i])];
      svg("path", { d: `M${x - 3} ${a}h6M${x - 3} ${b}h6M${x} ${a}V${b}`, class: "whisker" }, this.root);
    }

    bars(shown) {
      const margin = Math.min(this.slot * 0.8, shown.length * 46), wide = margin / shown.length;
      shown.forEach((s, k) => s.x.forEach((c, i) => {
        if (!isNumber(s.y[i])) return;
        const x = this.x(c) - margin / 2 + k * wide, [a, b] = [this.y(0), this.y(s.y[i])];
        const node = svg("rect", { x, y: Math.min(a, b), width: Math.max(1, wide - 1), height: Math.max(1, Math.abs(a - b)), rx: Math.min(2, wide / 4), class: `mark fill ${this.tone(s)}`, "data-series": nameOf(s) }, this.root);
        if (wide >= 5) this.whisker(s, i, x + wide / 2 - 0.5);
        this.target(s, i, x + wide / 2, b, node, String(c));
      }));
    }

    histogram(shown) {
      shown.forEach((s) => {
        if (!s.x2) return this.steps(s);
        s.y.forEach((v, i) => {
          if (!isNumber(v)) return;
          const [a, b] = [this.x(s.x[i]), this.x(s.x2[i])];
          const node = svg("rect", { x: a, y: this.y(v), width: Math.max(0.5, b - a), height: Math.max(0, this.y(0) - this.y(v)), class: `mark soft ${this.tone(s)}`, "stroke-width": b - a > 6 ? 1 : 0, "data-series": nameOf(s) }, this.root);
          this.target(s, i, (a + b) / 2, this.y(v), node, `${say(s.x[i])} to ${say(s.x2[i])}`);
        });
        this.outline(s);
      });
    }
    // The contour keeps overlapping histograms apart where their fills mix.
    outline(s) {
      let d = "";
      s.y.forEach((v, i) => { if (isNumber(v)) d += `${d ? "L" : `M${this.x(s.x[i])} ${this.y(0)}L`}${this.x(s.x[i])} ${this.y(v)}L${this.x(s.x2[i])} ${this.y(v)}`; });
      svg("path", { d, class: `mark path ${this.tone(s)}`, "data-series": nameOf(s) }, this.root);
    }
    steps(s) { this.words = true; this.slot = this.slot || 20; this.bars([s]); }

    lines(shown) {
      shown.forEach((s) => {
        let d = "", pen = false;
        const at = s.x.map((x, i) => (isNumber(s.y[i]) && x !== null ? [this.x(x), this.y(s.y[i])] : null));
        if (s.low && s.high) {
          const ok = at.map((p, i) => (p && isNumber(s.low[i]) && isNumber(s.high[i]) ? i : -1)).filter((i) => i >= 0);
          if (ok.length > 1) svg("path", { d: "M" + ok.map((i) => `${at[i][0]} ${this.y(s.high[i])}`).join("L") + "L" + ok.reverse().map((i) => `${at[i][0]} ${this.y(s.low[i])}`).join("L") + "Z", class: `mark band ${this.tone(s)}`, "fill-opacity": 1 / Math.sqrt(shown.length), "data-series": nameOf(s) }, this.root);
        }
        at.forEach((p) => { if (p) { d += `${pen ? "L" : "M"}${p[0].toFixed(1)} ${p[1].toFixed(1)}`; pen = true; } else pen = false; });
        const many = at.filter(Boolean).length, few = many <= 24;
        svg("path", { d, class: `mark path ${many > 120 ? "thin " : ""}${this.tone(s)}`, "stroke-dasharray": this.dash(s), "data-series": nameOf(s) }, this.root);
        at.forEach((p, i) => {
          if (!p) return;
          const node = few ? this.dot(s, p[0], p[1], 3.5) : null;
          this.target(s, i, p[0], p[1], node, `${this.figure.xlabel || "x"} ${say(s.x[i])}`);
        });
      });
    }

    // Circle, square, triangle, diamond: the shape distinguishes models where colour does not.
    dot(s, x, y, r) {
      const kind = (this.byModel ? s.place : s.position) % 4, common = { class: `mark fill ${this.tone(s)}`, "data-series": nameOf(s) };
      if (kind === 0) return svg("circle", { cx: x, cy: y, r, ...common }, this.root);
      const q = r * 1.25;
      const d = [`M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`, `M${x} ${y - q}L${x + q} ${y + r}H${x - q}Z`, `M${x} ${y - q}L${x + q} ${y}L${x} ${y + q}L${x - q} ${y}Z`][kind - 1];
      return svg("path", { d, ...common }, this.root);
    }

    scatter(shown) {
      const r = shown.reduce((n, s) => n + s.y.length, 0) > 600 ? 2.2 : 4;
      const named = [];
      shown.forEach((s) => s.x.forEach((v, i) => {
        if (!isNumber(s.y[i]) || v === null) return;
        const [x, y] = [this.x(v), this.y(s.y[i])];
        if (r > 3) this.whisker(s, i, x);
        const words = s.text && s.text[i];
        if (words) named.push([x, y, words]);
        this.target(s, i, x, y, this.dot(s, x, y, r), `${words ? words + ", " : ""}${this.figure.xlabel || "x"} ${say(v)}`);
      }));
      if (named.length <= 40) this.names(named);
    }

    // Names beside their points, on the side where there is space; one that would cover another or a point is left to the readout.
    names(points) {
      const taken = points.map(([x, y]) => [x - 5, y - 5, x + 5, y + 5]), edge = this.width - this.box.right;
      points.forEach(([x, y, words], own) => {
        const label = shorten(words, 150), wide = label.length * 6.6;
        const places = [[x + 8, y + 4, "start"], [x - 8, y + 4, "end"], [x, y - 9, "middle"], [x, y + 18, "middle"]];
        for (const [px, py, anchor] of places) {
          const left = anchor === "start" ? px : anchor === "end" ? px - wide : px - wide / 2;
          const box = [left, py - 11, left + wide, py + 3];
          const free = taken.every((t, i) => i === own || box[2] < t[0] || box[0] > t[2] || box[3] < t[1] || box[1] > t[3]);
          if (left < this.box.left || left + wide > edge || !free) continue;
          taken.push(box);
          svg("text", { x: px, y: py, "text-anchor": anchor, class: "name" }, this.root).textContent = label;
          return;
        }
      });
    }

    // Rows are series, columns are their x; a cell is as dark as its value is large, from 0 or, in a heat map, from the least.
    grid(shown) {
      const { root, figure } = this;
      const columns = [...new Set(shown.flatMap((s) => s.x).map(String))];
      const label = Math.min(this.width * 0.34, Math.max(...shown.map((s) => (s.label || s.model).length)) * 7 + 12);
      const top = figure.ylabel ? 44 : 26, wide = (this.width - label) / columns.length;
      const tall = Math.max(18, Math.min(56, (this.height - top - 24) / shown.length));
      this.height = top + tall * shown.length + (figure.xlabel ? 24 : 6);
      root.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      root.setAttribute("height", this.height);
      const most = Math.max(...shown.flatMap((s) => s.y.filter(isNumber).map(Math.abs)), 1e-12);
      const least = figure.heat ? Math.min(...shown.flatMap((s) => s.y.filter(isNumber)), most) : 0;
      const text = (x, y, words, extra) => { svg("text", { x, y, ...extra }, root).textContent = words; };
      if (figure.ylabel) text(0, 12, shorten(figure.ylabel, this.width), {});
      if (figure.xlabel) text(label + (this.width - label) / 2, this.height - 6, shorten(figure.xlabel, this.width - label), { "text-anchor": "middle" });
      const every = Math.max(1, Math.ceil(24 / wide));
      columns.forEach((c, k) => { if (k % every === 0) text(label + wide * (k + 0.5), top - 8, shorten(c, wide * every), { "text-anchor": "middle" }); });
      shown.forEach((s, r) => {
        text(label - 8, top + tall * (r + 0.5) + 4, shorten(s.label || s.model, label - 8), { "text-anchor": "end" });
        s.x.forEach((c, i) => {
          if (!isNumber(s.y[i])) return;
          const k = columns.indexOf(String(c)), x = label + wide * k, y = top + tall * r;
          const node = svg("rect", { x: x + 1, y: y + 1, width: Math.max(1, wide - 2), height: tall - 2, rx: 3, class: `mark cell m${s.place % 8}`, "fill-opacity": 0.04 + 0.3 * ((Math.abs(s.y[i]) - least) / (most - least || 1)), "data-series": nameOf(s) }, root);
          if (wide > 28 && tall > 16) text(x + wide / 2, y + tall / 2 + 4, say(s.y[i]), { "text-anchor": "middle", class: "count" });
          this.target(s, i, x + wide / 2, y + tall / 2, node, `${c}, ${s.label || s.model}`);
        });
      });
      this.box = { top, bottom: 0 };
    }

    listen() {
      const near = (event) => {
        const frame = this.root.getBoundingClientRect(), k = this.width / frame.width;
        const x = (event.clientX - frame.left) * k, y = (event.clientY - frame.top) * k;
        const weight = this.figure.kind === "scatter" || this.figure.kind === "grid" ? 1 : 0.05;
        let best = -1, least = Infinity;
        this.targets.forEach((t, i) => { const d = (t.x - x) ** 2 + weight * (t.y - y) ** 2; if (d < least) { least = d; best = i; } });
        this.point(best);
      };
      this.root.addEventListener("pointermove", near);
      this.root.addEventListener("pointerdown", near);
      this.root.addEventListener("pointerleave", () => this.point(-1));
      this.root.addEventListener("blur", () => this.point(-1));
      this.order = this.targets.map((_, i) => i).sort((a, b) => this.targets[a].x - this.targets[b].x);
      this.root.addEventListener("keydown", (event) => {
        const last = this.order.length - 1, now = this.order.indexOf(this.cursor);
        const next = { ArrowRight: Math.min(last, now + 1), ArrowLeft: Math.max(0, now - 1), Home: 0, End: last }[event.key];
        if (event.key === "Escape") this.point(-1);
        if (next === undefined) return;
        event.preventDefault();
        this.point(this.order[next], true);
      });
    }

    // Shows the values at target i, together with those of other series at the same x.
    point(i, aloud = false) {
      if (this.lit) this.lit.forEach((n) => n.classList.remove("lit"));
      if (this.cross) this.cross.remove();
      this.lit = []; this.cursor = i;
      this.readout.hidden = i < 0;
      if (i < 0) return;
      const t = this.targets[i];
      const same = ["scatter", "grid"].includes(this.figure.kind) ? [t] : this.targets.filter((o) => o.head === t.head);
      this.lit = [t.node].filter(Boolean);
      this.lit.forEach((n) => n.classList.add("lit"));
      if (this.figure.kind === "lines") this.cross = svg("line", { x1: t.x, x2: t.x, y1: this.box.top, y2: this.height - this.box.bottom, class: "cross" }, this.root);
      this.readout.replaceChildren();
      html("p", "head", t.head, this.readout);
      same.forEach((o) => o.lines.forEach((line) => html("p", "", line, this.readout)));
      const scale = this.root.getBoundingClientRect().width / this.width, wide = this.readout.offsetWidth;
      // Above the mark, over the legend if need be: what is read must not be hidden by its own value.
      const left = Math.min(t.x * scale - wide / 2, this.holder.clientWidth - wide), tall = this.readout.offsetHeight;
      this.readout.style.left = `${Math.max(0, left)}px`;
      this.readout.style.top = `${Math.max(-tall, Math.min(...same.map((o) => o.y)) * scale - tall - 14)}px`;
      if (aloud) this.status.textContent = [t.head, ...same.flatMap((o) => o.lines)].join(". ");
    }
  }

  const plots = [...document.querySelectorAll("[data-figure]")].map((holder) => new Plot(holder, figures[Number(holder.dataset.figure)]));

  document.querySelectorAll("[data-model]").forEach((chip) => chip.addEventListener("click", () => {
    const model = chip.dataset.model, hide = !hiddenModels.has(model);
    if (hide) hiddenModels.add(model); else hiddenModels.delete(model);
    chip.setAttribute("aria-pressed", String(!hide));
    plots.forEach((plot) => plot.draw());
  }));

  // A link to a folded part opens it; a printed page shows everything.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const folded = target.closest("details") || target.parentNode.querySelector(":scope > details");
    if (folded) folded.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  document.querySelectorAll("nav a").forEach((a) => a.addEventListener("click", () => { if (a.hash === location.hash) reveal(); }));
  reveal();
  window.addEventListener("beforeprint", () => document.querySelectorAll("details.topic, main > section > details").forEach((d) => { d.open = true; }));
  const parts = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const inView = new IntersectionObserver((seen) => seen.forEach((s) => {
    const link = parts.get(s.target.id);
    if (link && s.isIntersecting) { parts.forEach((a) => a.removeAttribute("aria-current")); link.setAttribute("aria-current", "true"); }
  }), { rootMargin: "0px 0px -70% 0px" });
  parts.forEach((_, id) => { const node = document.getElementById(id); if (node) inView.observe(node); });

  const copy = async (words, code) => {
    try { await navigator.clipboard.writeText(words); return true; } catch { /* a page from disk may not be allowed to */ }
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return document.execCommand("copy");
  };
  document.querySelectorAll(".copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.parentNode.querySelector("code");
      button.textContent = (await copy(code.textContent, code)) ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  });
})();
