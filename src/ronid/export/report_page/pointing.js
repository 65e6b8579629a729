// Pointer, touch and keyboard on the map, and the card that tells about one utterance.
const tip = byId("tip");

function focusOn(index, spoken = false) {
  if (index === current) return;
  current = index;
  showTip();
  redraw();
  if (spoken && index >= 0) byId("spoken").textContent = `${points.text[index]}. ${facts(index).join(", ")}`;
}

function facts(index) {
  const intent = report.intents[points.intent[index]];
  const parts = [intent.name, `${kindOf(intent)} intent`];
  if (points.confidence) parts.push(`confidence ${points.confidence[index].toFixed(2)}`);
  if (points.given && points.given[index]) parts.push("labelled by you");
  return parts;
}

function showTip() {
  tip.hidden = current < 0;
  if (current < 0) return;
  const [name, , ...rest] = facts(current);
  const intent = report.intents[points.intent[current]];
  const meta = element("div", { className: "meta" }, [element("strong", { text: name, dir: "auto" }), badge(intent)]);
  for (const fact of rest) meta.append(element("span", { text: fact }));
  tip.replaceChildren(element("p", { text: points.text[current], dir: "auto" }), meta);
  const [x, y] = toScreen(fit(), points.x[current], points.y[current]);
  const left = x + 16 + tip.offsetWidth > view.width ? x - 16 - tip.offsetWidth : x + 16;
  const top = y + 16 + tip.offsetHeight > view.height ? y - 16 - tip.offsetHeight : y + 16;
  tip.style.transform = `translate(${Math.max(6, left)}px, ${Math.max(6, top)}px)`;
}

const fingers = new Map();
let travelled = 0;

const place = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const spread = () => {
  const [a, b] = [...fingers.values()];
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
};

canvas.addEventListener("pointerdown", (event) => {
  fingers.set(event.pointerId, place(event));
  canvas.setPointerCapture(event.pointerId);
  travelled = 0;
});
canvas.addEventListener("pointermove", (event) => {
  const [x, y] = place(event);
  const before = fingers.get(event.pointerId);
  if (!before) {
    focusOn(nearest(x, y));
    return;
  }
  const gap = fingers.size === 2 ? spread() : 0;
  fingers.set(event.pointerId, [x, y]);
  travelled += Math.hypot(x - before[0], y - before[1]);
  if (gap) {
    const [a, b] = [...fingers.values()];
    zoomBy(spread() / gap, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
  } else if (travelled > 4) {
    canvas.classList.add("dragging");
    panBy(x - before[0], y - before[1]);
  }
});
const lift = (event) => {
  const tapped = event.type === "pointerup" && fingers.size === 1 && travelled <= 4;
  fingers.delete(event.pointerId);
  canvas.classList.remove("dragging");
  if (tapped) focusOn(nearest(...place(event), event.pointerType === "touch" ? 26 : 14));
};
canvas.addEventListener("pointerup", lift);
canvas.addEventListener("pointercancel", lift);
canvas.addEventListener("pointerleave", (event) => {
  if (event.pointerType === "mouse") focusOn(-1);
});
canvas.addEventListener("dblclick", (event) => zoomBy(2, ...place(event)));
canvas.addEventListener(
  "wheel",
  (event) => {
    // The page keeps its scroll wheel until the reader has clicked the map.
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...place(event));
  },
  { passive: false },
);

const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function step([alongX, alongY]) {
  const fitted = fit();
  const { lit } = matches();
  const from = current >= 0 ? toScreen(fitted, points.x[current], points.y[current]) : [view.width / 2, view.height / 2];
  let best = -1;
  let bestCost = Infinity;
  for (let i = 0; i < points.x.length; i += 1) {
    if (!lit[i] || i === current) continue;
    const [x, y] = toScreen(fitted, points.x[i], points.y[i]);
    const along = (x - from[0]) * alongX + (y - from[1]) * alongY;
    const aside = Math.abs((x - from[0]) * alongY) + Math.abs((y - from[1]) * alongX);
    const cost = current < 0 ? Math.hypot(x - from[0], y - from[1]) : along + 2 * aside;
    if ((current < 0 || along > 0.5) && cost < bestCost) [best, bestCost] = [i, cost];
  }
  if (best < 0) return;
  focusOn(best, true);
  const [x, y] = toScreen(fitted, points.x[best], points.y[best]);
  if (x < 0 || y < 0 || x > view.width || y > view.height) panBy(view.width / 2 - x, view.height / 2 - y);
}

canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    "+": () => zoomBy(1.5),
    "=": () => zoomBy(1.5),
    "-": () => zoomBy(1 / 1.5),
    0: resetView,
    Enter: () => current >= 0 && change({ selected: points.intent[current] }),
    Escape: () => {
      focusOn(-1);
      change({ selected: null });
    },
  };
  const action = ARROWS[event.key] ? () => step(ARROWS[event.key]) : actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
canvas.addEventListener("blur", () => focusOn(-1));

byId("zoom-in").addEventListener("click", () => zoomBy(1.6));
byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.6));
byId("zoom-reset").addEventListener("click", resetView);
byId("search").addEventListener("input", (event) => change({ query: event.target.value }));
for (const kind of ["known", "new"]) {
  byId(`show-${kind}`).addEventListener("change", (event) => change({ [kind]: event.target.checked }));
}
dark.addEventListener("change", resize);
new ResizeObserver(resize).observe(byId("stage"));

const LISTED = 200;

function showMatches() {
  const { lit, count: found } = matches();
  if (current >= 0 && !lit[current]) focusOn(-1);
  byId("hits").textContent = state.query.trim() ? `${wholeNumber.format(found)} of ${count(points.text.length, "utterance")}` : "";
  const list = byId("list");
  list.hidden = !filtered();
  byId("list-summary").textContent = `List ${found > LISTED ? `the first ${LISTED} of ` : ""}${count(found, "utterance")}`;
  if (list.open) fillList();
  redraw();
}

function fillList() {
  const { lit } = matches();
  const rows = [];
  for (let i = 0; i < lit.length && rows.length < LISTED; i += 1) {
    if (!lit[i] || !filtered()) continue;
    rows.push(
      element("li", {}, [
        element("span", { text: points.text[i], dir: "auto" }),
        element("span", { text: report.intents[points.intent[i]].name, dir: "auto" }),
      ]),
    );
  }
  byId("list-items").replaceChildren(...rows);
}

byId("list").addEventListener("toggle", fillList);
listeners.push(showMatches);
