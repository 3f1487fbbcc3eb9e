"use strict";
// The charts of the page, drawn from the data that the compiler put into it. Times are seconds,
// sizes bytes.

const plans = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const GUTTER = 92, LANE = 17, MEMORY_HEIGHT = 190, ARENA_HEIGHT = 330, AXIS = 18;
const STREAMS = ["compute", "transfer", "reduce"];
const PHASES = [["forward", "#3b7dd8"], ["backward", "#e08a2e"], ["update", "#3f9d63"],
                ["prologue", "#8a7fb8"], ["setup", "#6b7a99"], ["communication", "#0f9aa8"]];
const KINDS = [["parameters", "#44546a"], ["frozen parameters", "#7c8aa0"], ["moments", "#8497b0"],
               ["statistics", "#a8a29a"], ["constants", "#bcb5aa"], ["accumulators", "#a0522d"],
               ["inputs", "#c9a227"], ["kept for the backward phase", "#3b7dd8"],
               ["computed again", "#0f9aa8"], ["computed", "#5fae74"], ["gradients", "#e08a2e"]];
const KIND_COLOR = new Map(KINDS);
const PHASE_COLOR = new Map(PHASES);

// What is shown. `moment` is an index into the position's times, `view` the visible part.
const state = {plan: 0, position: 0, moment: 0, view: [0, 1], chosen: null};
const plan = () => plans[state.plan];
const position = () => plan().positions[state.position];

function bytesText(bytes) {
  let unit = "B";
  for (const larger of ["KiB", "MiB", "GiB", "TiB"]) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return (unit === "B" ? bytes.toFixed(0) : bytes.toFixed(1)) + " " + unit;
}

function secondsText(seconds) {
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    if (seconds >= size) return (seconds / size).toPrecision(3) + " " + unit;
  }
  return (seconds / 1e-9).toPrecision(3) + " ns";
}

const percent = (share) => (100 * share).toFixed(1) + "%";

function add(parent, name, attributes = {}, text = "") {
  const svg = parent.namespaceURI.endsWith("svg") || name === "svg";
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
                      : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== "") element.textContent = text;
  parent.appendChild(element);
  return element;
}

function clear(id) {
  $(id).replaceChildren();
  return $(id);
}

function phaseOf(task) {
  if (task.kind !== "compute") return "communication";
  const phase = PHASES.find(([name]) => task.name.startsWith(name));
  return phase ? phase[0] : "prologue";
}

// Live bytes of each kind at each time of a position, and their sum.
const memoryOf = new Map();
function memory(p) {
  if (memoryOf.has(p)) return memoryOf.get(p);
  const count = p.places.length;
  const kinds = new Map(), total = new Float64Array(count + 1);
  for (const [b, , first, last] of p.spans) {
    const {kind, bytes} = p.buffers[b];
    if (!kinds.has(kind)) kinds.set(kind, new Float64Array(count + 1));
    for (const live of [kinds.get(kind), total]) {
      live[first] += bytes;
      live[last + 1] -= bytes;
    }
  }
  for (const live of [...kinds.values(), total]) {
    for (let i = 1; i <= count; ++i) live[i] += live[i - 1];
  }
  let peak = 0;
  for (let i = 0; i < count; ++i) if (total[i] > total[peak]) peak = i;
  memoryOf.set(p, {kinds, total, peak});
  return memoryOf.get(p);
}

const width = () => Math.max(300, $("charts").clientWidth - GUTTER);
const xOf = (t) => GUTTER + (t - state.view[0]) / (state.view[1] - state.view[0]) * width();
const timeAt = (x) => state.view[0] + (x - GUTTER) / width() * (state.view[1] - state.view[0]);

// A chart with a clipped area for what has a time.
function chart(id, height) {
  const svg = add(clear(id), "svg", {height, viewBox: `0 0 ${GUTTER + width()} ${height}`});
  const defs = add(svg, "defs");
  const clip = add(defs, "clipPath", {id: "clip-" + id});
  add(clip, "rect", {x: GUTTER, y: 0, width: width(), height});
  const area = add(svg, "g", {"clip-path": `url(#clip-${id})`});
  return {svg, defs, area};
}

function drawAxis(svg, y, height) {
  const [begin, end] = state.view, rough = (end - begin) / 7;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((f) => f * power >= rough) * power;
  for (let t = Math.ceil(begin / step) * step; t <= end; t += step) {
    add(svg, "line", {class: "grid", x1: xOf(t), x2: xOf(t), y1: y, y2: height});
    add(svg, "text", {x: xOf(t) + 3, y: y - 5}, t === 0 ? "0" : secondsText(t));
  }
}

function drawTimeline() {
  const lanes = plan().positions.map(
      (p) => [...new Set(p.entries.map((entry) => entry[2]))].sort((a, b) => a - b));
  const gap = 6, rows = lanes.reduce((sum, streams) => sum + streams.length * LANE + gap, 0);
  const {svg, defs, area} = chart("timeline", AXIS + rows);
  const hatch = add(defs, "pattern", {id: "hatch", width: 5, height: 5,
                                      patternUnits: "userSpaceOnUse",
                                      patternTransform: "rotate(45)"});
  add(hatch, "rect", {width: 2, height: 5, fill: PHASE_COLOR.get("communication")});
  let y = AXIS;
  plan().positions.forEach((p, number) => {
    lanes[number].forEach((stream, row) => {
      const name = STREAMS[stream] ?? "stream " + stream;
      add(svg, "rect", {class: "lane", x: GUTTER, y, width: width(), height: LANE - 2});
      add(svg, "text", {x: 0, y: y + 12}, (row === 0 ? number + "  " : "    ") + name)
          .setAttribute("xml:space", "preserve");
      p.entries.forEach((entry, e) => {
        if (entry[2] === stream) drawEntry(area, p, number, entry, e, y);
      });
      y += LANE;
    });
    y += gap;
  });
  drawAxis(svg, AXIS, AXIS + rows - gap);
  svg.appendChild(area);
}

function drawEntry(area, p, number, [t, microBatch, stream, posted, begin, end], e, y) {
  const task = p.tasks[t];
  if (stream !== 0 && begin > posted) {
    add(area, "rect", {class: "wait", x: xOf(posted), y: y + 3, height: LANE - 8,
                       width: xOf(begin) - xOf(posted)});
  }
  const w = Math.max(.8, xOf(end) - xOf(begin));
  const chosen = state.chosen === `entry ${number} ${e}` ? " chosen" : "";
  add(area, "rect", {class: "entry" + chosen, x: xOf(begin), y, width: w, height: LANE - 2, rx: 2,
                     fill: PHASE_COLOR.get(phaseOf(task)), "data-position": number,
                     "data-entry": e});
  const label = phaseOf(task) === "update" ? "update" : task.name[0].toUpperCase() + microBatch;
  if (stream === 0 && w > 8 * label.length + 4) {
    add(area, "text", {class: "inside", x: xOf(begin) + 4, y: y + 11.5}, label);
  }
}

// The visible samples: for each pixel the time with most live bytes, so that peaks never vanish.
function samples(p, total) {
  const result = [];
  let i = 0;
  while (i + 1 < p.places.length && p.times[i + 1] <= state.view[0]) ++i;
  while (i < p.places.length && p.times[i] <= state.view[1]) {
    const edge = Math.max(timeAt(Math.floor(xOf(p.times[i])) + 1), p.times[i]);
    let most = i, next = i + 1;
    for (; next < p.places.length && p.times[next] < edge; ++next) {
      if (total[next] > total[most]) most = next;
    }
    result.push({i: most, from: p.times[i], to: p.times[next]});
    i = next;
  }
  return result;
}

function drawMemory() {
  const p = position(), {kinds, total, peak} = memory(p);
  const {svg, area} = chart("memory", MEMORY_HEIGHT + AXIS);
  const top = Math.max(p.arena, total[peak]) * 1.04;
  const yOf = (bytes) => AXIS + MEMORY_HEIGHT * (1 - bytes / top);
  const shown = samples(p, total), below = new Float64Array(shown.length);
  for (const [kind, color] of KINDS) {
    const live = kinds.get(kind);
    if (!live) continue;
    const upper = [], lower = [];
    shown.forEach(({i, from, to}, s) => {
      const base = below[s];
      below[s] += live[i];
      upper.push(`${xOf(from)},${yOf(below[s])}`, `${xOf(to)},${yOf(below[s])}`);
      lower.push(`${xOf(from)},${yOf(base)}`, `${xOf(to)},${yOf(base)}`);
    });
    add(area, "polygon", {class: "kind", fill: color, "data-kind": kind,
                          points: [...upper, ...lower.reverse()].join(" ")});
  }
  for (const share of [0, .25, .5, .75, 1]) {
    add(svg, "text", {x: 0, y: Math.min(AXIS + MEMORY_HEIGHT - 2, yOf(share * total[peak]) + 4)},
        bytesText(share * total[peak]));
  }
  add(svg, "line", {class: "limit", x1: GUTTER, x2: GUTTER + width(), y1: yOf(p.arena),
                    y2: yOf(p.arena)});
  drawAxis(svg, AXIS, AXIS + MEMORY_HEIGHT);
  drawMoment(area, AXIS + MEMORY_HEIGHT);
}

function drawMoment(area, height) {
  const x = xOf(position().times[state.moment]);
  add(area, "line", {class: "moment", x1: x, x2: x, y1: 0, y2: height});
}

function drawArena() {
  const p = position(), {svg, area} = chart("arena", ARENA_HEIGHT);
  const yOf = (byte) => ARENA_HEIGHT * (1 - byte / p.arena);
  for (const [b, instance, first, last] of p.spans) {
    const buffer = p.buffers[b], begin = buffer.offset + instance * buffer.stride;
    const [from, to] = [p.times[first], p.times[last + 1]];
    if (to < state.view[0] || from > state.view[1] || buffer.bytes === 0) continue;
    const height = yOf(begin) - yOf(begin + buffer.bytes);
    const look = state.chosen === `tensor ${b}` ? " chosen" : height > 3 ? " thick" : "";
    add(area, "rect", {class: "buffer" + look, x: xOf(from), y: yOf(begin + buffer.bytes),
                       width: Math.max(.6, xOf(to) - xOf(from)), height: Math.max(.6, height),
                       fill: KIND_COLOR.get(buffer.kind), "data-buffer": b});
  }
  for (const share of [0, .5, 1]) {
    add(svg, "text", {x: 0, y: Math.min(ARENA_HEIGHT - 2, Math.max(10, yOf(share * p.arena) + 4))},
        bytesText(share * p.arena));
  }
  drawMoment(area, ARENA_HEIGHT);
}
