// The table of intents, and the card in the map about the chosen one.
const largest = Math.max(...report.intents.map((intent) => Math.max(intent.share, intent.prior)), 1e-9);
const rows = report.intents.map((intent, index) => ({ intent, index, node: row(intent, index) }));
const DESCENDING_FIRST = new Set(["size", "confidence"]);
let order = { key: "kind", descending: false };

function cell(className, children) {
  return element("td", { className, role: "cell" }, children);
}

function row(intent, index) {
  const name = element("button", { className: "name", type: "button", text: intent.name, dir: "auto", "aria-pressed": "false" });
  name.addEventListener("click", () => choose(state.selected === index ? null : index));
  return element("tr", { role: "row" }, [
    cell("intent", [name]),
    cell("kind", [badge(intent), ...addedBy(intent)]),
    cell("wide", [sizeBar(intent)]),
    cell("number", [intent.size ? intent.confidence.toFixed(2) : "–"]),
    cell("evidence", evidence(intent)),
  ]);
}

// Which update brought an intent; nothing of those that were there from the start.
function addedBy(intent) {
  return intent.added ? [element("span", { className: "added", text: `since version ${intent.added}` })] : [];
}

// What the prior says of an intent, in words; nothing where the method estimates none.
function priorOf(intent, before) {
  return report.prior ? `${before}prior ${percent(intent.prior)}` : "";
}

function sizeBar(intent) {
  const fill = element("i");
  fill.style.width = `${(intent.share / largest) * 100}%`;
  const bar = element("span", { className: `bar ${kindOf(intent)}`, title: `${percent(intent.share)} of all utterances${priorOf(intent, "; ")}` }, [fill]);
  if (report.prior) {
    const tick = element("u");
    tick.style.left = `${(intent.prior / largest) * 100}%`;
    bar.append(tick);
  }
  return element("div", { className: "size" }, [element("b", { text: wholeNumber.format(intent.size) }), bar]);
}

// A description made of keyphrases and an example would only repeat what stands beside it.
function described(intent) {
  return intent.description && intent.named_by.startsWith("model:");
}

function evidence(intent) {
  const parts = [];
  if (described(intent)) parts.push(element("p", { className: "description", text: intent.description, dir: "auto" }));
  parts.push(element("p", { className: "phrases", text: intent.keyphrases.join(", "), dir: "auto" }));
  if (intent.nearest.length) parts.push(neighbours(intent));
  const folded = [folds(intent, "example", intent.exemplars), folds(intent, "borderline utterance", intent.borderline)];
  parts.push(element("div", { className: "folds" }, folded.filter(Boolean)));
  return parts;
}

function neighbours(intent) {
  const line = element("p", { className: "nearest" }, ["Nearest known: "]);
  intent.nearest.forEach(({ name, similarity }, i) => {
    if (i) line.append(", ");
    line.append(element("bdi", { text: name }), ` ${similarity.toFixed(2)}`);
  });
  return line;
}

function folds(intent, noun, texts) {
  if (!texts.length) return null;
  const label = count(texts.length, noun);
  return element("details", {}, [
    element("summary", { text: label, "aria-label": `${label} of ${intent.name}` }),
    element("ul", {}, texts.map((text) => element("li", { text, dir: "auto" }))),
  ]);
}

function choose(index) {
  change({ selected: index });
  if (index === null) return;
  const box = byId("stage").getBoundingClientRect();
  if (box.top < 0 || box.bottom > window.innerHeight) byId("map-heading").scrollIntoView({ block: "start" });
}

const SORTED_BY = {
  name: (a, b) => a.intent.name.localeCompare(b.intent.name),
  kind: (a, b) => Number(a.intent.known) - Number(b.intent.known),
  size: (a, b) => a.intent.size - b.intent.size,
  confidence: (a, b) => a.intent.confidence - b.intent.confidence,
};

function sortRows() {
  const sign = order.descending ? -1 : 1;
  const compare = (a, b) => sign * SORTED_BY[order.key](a, b) || b.intent.size - a.intent.size || a.index - b.index;
  byId("rows").replaceChildren(...[...rows].sort(compare).map((each) => each.node));
  for (const head of document.querySelectorAll("th[data-key]")) {
    if (head.dataset.key === order.key) head.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

for (const head of document.querySelectorAll("th[data-key]")) {
  const { key } = head.dataset;
  head.querySelector("button").addEventListener("click", () => {
    order = { key, descending: order.key === key ? !order.descending : DESCENDING_FIRST.has(key) };
    sortRows();
  });
}

function showChosen() {
  for (const { index, node } of rows) {
    node.classList.toggle("selected", index === state.selected);
    node.querySelector(".name").setAttribute("aria-pressed", String(index === state.selected));
  }
  const card = byId("chosen");
  card.hidden = state.selected === null;
  if (card.hidden) return;
  const intent = report.intents[state.selected];
  const clear = element("button", { type: "button", text: "×", "aria-label": `Stop highlighting ${intent.name}` });
  clear.addEventListener("click", () => {
    choose(null);
    canvas.focus({ preventScroll: true });
  });
  card.replaceChildren(
    element("strong", { text: intent.name, dir: "auto" }),
    badge(intent),
    ...addedBy(intent),
    element("p", { text: `${count(intent.size, "utterance")}, mean confidence ${intent.confidence.toFixed(2)}` }),
    ...(intent.description ? [element("p", { className: "description", text: intent.description, dir: "auto" })] : []),
    ...(intent.nearest.length ? [neighbours(intent)] : []),
    clear,
  );
}

listeners.push(showChosen);
sortRows();
