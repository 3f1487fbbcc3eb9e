// What the page says beside its charts, and how it answers. Follows charts.js in one script.

function drawLive() {
  const p = position(), {total, peak} = memory(p), panel = clear("live");
  const [e, call] = p.places[state.moment] ?? [0, 0];
  const [t, microBatch] = p.entries[e];
  const task = p.tasks[t];
  const where = task.name + " of micro-batch " + microBatch +
                (task.calls.length > 0 ? ", call " + call : "");
  const what = state.moment === peak ? "Live at the peak of position " : "Live on position ";
  add(panel, "h2", {}, what + state.position + ": " + bytesText(total[state.moment]));
  add(panel, "p", {class: "hint"}, where);
  const kinds = new Map();
  for (const [b, , first, last] of p.spans) {
    if (state.moment < first || state.moment > last) continue;
    const {kind, layer, bytes} = p.buffers[b];
    if (!kinds.has(kind)) kinds.set(kind, new Map());
    kinds.get(kind).set(layer, (kinds.get(kind).get(layer) ?? 0) + bytes);
  }
  const sum = (layers) => [...layers.values()].reduce((a, b) => a + b, 0);
  const order = [...kinds].sort((a, b) => sum(b[1]) - sum(a[1]));
  for (const [kind, layers] of order) {
    const details = add(panel, "details"), summary = add(details, "summary", {"data-kind": kind});
    add(summary, "i", {style: "background:" + KIND_COLOR.get(kind)});
    add(summary, "span", {}, kind);
    add(summary, "b", {}, bytesText(sum(layers)));
    for (const [layer, bytes] of [...layers].sort((a, b) => b[1] - a[1])) {
      const line = add(details, "div");
      add(line, "span", {}, layer);
      add(line, "b", {}, bytesText(bytes));
    }
  }
}

// What `sgtc explain` says of a node or tensor.
function callText(call, name) {
  const others = call.nodes.filter((node) => node !== name);
  const joint = others.length > 0 ? "    one kernel with " + others.join(", ") + "\n" : "";
  return call.work + joint + call.uses;
}

function nameText(name) {
  let text = "";
  for (const p of plan().positions) {
    let found = "";
    const tensors = new Set();
    for (const task of p.tasks) {
      for (const call of task.calls.filter((each) => each.nodes.includes(name))) {
        found += callText(call, name);
        call.written.forEach((b) => tensors.add(b));
      }
    }
    const own = p.buffers.findIndex((buffer) => buffer.name === name);
    if (own >= 0) tensors.add(own);
    for (const b of tensors) found += p.buffers[b].text;
    if (found) text += p.stage + found;
  }
  return text;
}

function explain(title, text) {
  const panel = clear("explanation");
  add(panel, "h2", {}, title);
  add(panel, "pre", {}, text.trimEnd());
  return panel;
}

function chooseName(name) {
  const b = position().buffers.findIndex((buffer) => buffer.name === name);
  state.chosen = b >= 0 ? `tensor ${b}` : null;
  explain(name, nameText(name) || "The plan has no kernel of a node and no tensor of that name.");
  draw();
}

function chooseEntry(number, e) {
  const p = plan().positions[number];
  const [t, microBatch, , posted, begin, end] = p.entries[e], task = p.tasks[t];
  state.chosen = `entry ${number} ${e}`;
  if (number !== state.position) choosePosition(number);
  let text = p.stage + task.name + " of micro-batch " + microBatch + ": from " +
             secondsText(begin) + " to " + secondsText(end) + ", " + secondsText(end - begin) +
             "\n";
  if (task.kind !== "compute") {
    text += task.text + "posted at " + secondsText(posted) + ", waits " +
            secondsText(Math.max(0, begin - posted)) + " for its other ends\n";
  }
  const panel = explain(task.name, text);
  if (task.calls.length > 0) {
    const list = add(panel, "div", {class: "calls"});
    task.calls.forEach((call, c) => {
      const button = add(list, "button", {"data-call": c});
      add(button, "span", {}, call.nodes.length > 0 ? call.nodes.join(", ") : "call " + c);
      add(button, "em", {}, secondsText(call.seconds));
      button.addEventListener("click", () => {
        const written = call.written.map((b) => p.buffers[b].text).join("");
        explain(call.nodes[0] ?? task.name, p.stage + callText(call, "") + written);
      });
    });
  }
  draw();
}

function chooseBuffer(b) {
  state.chosen = `tensor ${b}`;
  const buffer = position().buffers[b];
  explain(buffer.name, position().stage + buffer.text + buffer.kind + ", layer " + buffer.layer);
  draw();
}

function choosePosition(number) {
  state.position = number;
  state.moment = memory(position()).peak;
  if (state.chosen?.startsWith("tensor")) state.chosen = null;
}

function chooseMoment(t) {
  const {times, places} = position();
  let i = 0;
  while (i + 1 < places.length && times[i + 1] <= t) ++i;
  state.moment = i;
}

function legend(id, items) {
  const parent = clear(id);
  for (const [name, color] of items) {
    const item = add(parent, "span");
    add(item, "i", {style: "background:" + color});
    item.append(name);
  }
}

function draw() {
  drawTimeline();
  drawMemory();
  drawArena();
  drawLive();
  const used = memory(position()).kinds;
  legend("kinds", KINDS.filter(([kind]) => used.has(kind)));
  [...$("positions").children].forEach(
      (button, p) => button.classList.toggle("chosen", p === state.position));
}

function drawSummary() {
  const p = plan(), most = (field) => Math.max(...p.positions.map((each) => each[field]));
  $("model").textContent = p.model || "plan";
  document.title = "sgtc: " + (p.model || "plan");
  $("subtitle").textContent = `${p.target} on ${p.machine}; ${p.mesh}, ${p.ranks} rank` +
      `${p.ranks === 1 ? "" : "s"}; ${p.micro_batches} × ${p.rows} rows per replica`;
  const traffic = p.links.reduce((sum, link) => sum + link[4] + link[5], 0);
  const cards = clear("cards");
  for (const [value, what] of [
    [secondsText(p.seconds), "step, simulated"], [percent(p.bubble), "bubble"],
    [p.overlap.toFixed(2), "overlap"], [secondsText(most("exposed")), "exposed communication"],
    [bytesText(traffic), "sent by a rank of each position"],
    [bytesText(most("peak")), "most live on a rank"], [bytesText(most("arena")), "arena"],
  ]) {
    const card = add(cards, "div", {class: "card"});
    add(card, "b", {}, value);
    add(card, "span", {}, what);
  }
}

function table(id, heads, rows) {
  const parent = clear(id), head = add(parent, "tr");
  for (const text of heads) add(head, "th", {}, text);
  for (const row of rows) {
    const line = add(parent, "tr");
    for (const text of row) add(line, "td", {}, String(text));
  }
}

function drawTables() {
  table("per-position",
        ["position", "computes", "communicates", "exposed", "idle", "overlap", "peak live",
         "arena"],
        plan().positions.map((p, i) => [
          i, secondsText(p.computing), secondsText(p.communicating), secondsText(p.exposed),
          secondsText(p.idle), p.overlap.toFixed(2), bytesText(p.peak), bytesText(p.arena)]));
  table("links", ["communicator", "from", "to", "messages", "in the host", "network", "alone"],
        plan().links.map(([name, from, to, messages, host, network, seconds]) => [
          name, from, to < 0 ? "all" : to, messages, bytesText(host), bytesText(network),
          secondsText(seconds)]));
}

function showPlan(number) {
  state.plan = number;
  state.chosen = null;
  state.view = [0, plan().seconds || 1];
  const buttons = clear("positions");
  plan().positions.forEach((p, i) => {
    add(buttons, "button", {}, "position " + i).addEventListener("click", () => {
      choosePosition(i);
      draw();
    });
  });
  const names = new Set();
  for (const p of plan().positions) {
    for (const task of p.tasks) task.calls.forEach((c) => c.nodes.forEach((n) => names.add(n)));
    p.buffers.forEach((buffer) => names.add(buffer.name));
  }
  const list = clear("names");
  for (const name of names) add(list, "option", {value: name});
  choosePosition(0);
  explain("Why?", "Click a task, a tensor of the arena, or a moment of the memory's chart; " +
                      "or name a node of the model above.");
  drawSummary();
  drawTables();
  draw();
}

function zoom(factor, around = (state.view[0] + state.view[1]) / 2) {
  const whole = plan().seconds || 1;
  const length = Math.min(whole, Math.max(whole * 1e-6, (state.view[1] - state.view[0]) * factor));
  const share = (around - state.view[0]) / (state.view[1] - state.view[0]);
  move(Math.max(0, Math.min(whole - length, around - share * length)), length);
}

function move(begin, length) {
  const whole = plan().seconds || 1;
  begin = Math.max(0, Math.min(whole - length, begin));
  state.view = [begin, begin + length];
  draw();
}

function tip(event, text) {
  $("tip").hidden = text === "";
  $("tip").textContent = text;
  $("tip").style.left = Math.min(event.clientX + 14, innerWidth - 540) + "px";
  $("tip").style.top = Math.min(event.clientY + 14, innerHeight - 90) + "px";
}

function tipText({dataset}) {
  if (dataset.buffer) return position().buffers[dataset.buffer].text.trim();
  if (!dataset.entry) return dataset.kind ?? "";
  const [t, microBatch, , posted, begin, end] =
      plan().positions[dataset.position].entries[dataset.entry];
  const {name, kind} = plan().positions[dataset.position].tasks[t];
  const wait = kind === "compute" ? "" : `, ${secondsText(Math.max(0, begin - posted))} waiting`;
  return `${name} of micro-batch ${microBatch}: ${secondsText(end - begin)}${wait}`;
}

function listen() {
  const charts = $("charts");
  const x = (event) => event.clientX - charts.getBoundingClientRect().left;
  let drag = null;
  charts.addEventListener("mousemove", (event) => tip(event, drag ? "" : tipText(event.target)));
  charts.addEventListener("mouseleave", (event) => tip(event, ""));
  charts.addEventListener("wheel", (event) => {
    if (!event.target.closest("svg") || event.shiftKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : .8, timeAt(x(event)));
  }, {passive: false});
  charts.addEventListener("mousedown", (event) => {
    if (event.target.closest("svg")) drag = {x: x(event), view: [...state.view], moved: false};
  });
  addEventListener("mousemove", (event) => {
    if (!drag || Math.abs(x(event) - drag.x) < 4) return;
    drag.moved = true;
    const length = drag.view[1] - drag.view[0];
    move(drag.view[0] - (x(event) - drag.x) / width() * length, length);
  });
  addEventListener("mouseup", (event) => {
    const click = drag && !drag.moved;
    drag = null;
    if (!click) return;
    const {dataset} = event.target;
    if (dataset.entry) return chooseEntry(Number(dataset.position), Number(dataset.entry));
    if (event.target.closest("#memory, #arena")) chooseMoment(timeAt(x(event)));
    if (dataset.buffer) return chooseBuffer(Number(dataset.buffer));
    draw();
  });
  $("closer").addEventListener("click", () => zoom(.5));
  $("farther").addEventListener("click", () => zoom(2));
  $("whole").addEventListener("click", () => zoom(Infinity));
  $("search").addEventListener("change", (event) => chooseName(event.target.value));
  $("plan").addEventListener("change", (event) => showPlan(event.target.selectedIndex));
  addEventListener("resize", draw);
  addEventListener("hashchange", follow);
}

// "#plan=0&position=1&node=NAME", or tensor= or task=.
function follow() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.has("plan")) showPlan(Number(wanted.get("plan")));
  if (wanted.has("position")) choosePosition(Number(wanted.get("position")));
  const name = wanted.get("node") ?? wanted.get("tensor");
  if (name) return chooseName(name);
  const e = position().entries.findIndex(([t]) => position().tasks[t].name === wanted.get("task"));
  if (e >= 0) return chooseEntry(state.position, e);
  draw();
}

for (const p of plans) add($("plan"), "option", {}, `${p.model} ${p.mesh}`);
$("plan").hidden = plans.length < 2;
legend("phases", PHASES);
listen();
showPlan(0);
follow();
