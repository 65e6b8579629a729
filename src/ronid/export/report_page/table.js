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
    cell("kind", [badge(intent)]),
    cell("wide", [sizeBar(intent)]),
    cell("number", [intent.size ? intent.confidence.toFixed(2) : "–"]),
    cell("evidence", evidence(intent)),
  ]);
}

function sizeBar(intent) {
  const fill = element("i");
  const tick = element("u");
  fill.style.width = `${(intent.share / largest) * 100}%`;
  tick.style.left = `${(intent.prior / largest) * 100}%`;
  const bar = element("span", { className: `bar ${kindOf(intent)}`, title: `${percent(intent.share)} of all utterances; prior ${percent(intent.prior)}` }, [fill, tick]);
  return element("div", { className: "size" }, [element("b", { text: wholeNumber.format(intent.size) }), bar]);
}

function evidence(intent) {
  const parts = [element("p", { className: "phrases", text: intent.keyphrases.join(", "), dir: "auto" })];
  if (intent.exemplars.length) {
    const examples = intent.exemplars.map((text) => element("li", { text, dir: "auto" }));
    parts.push(
      element("details", {}, [
        element("summary", { text: count(examples.length, "example"), "aria-label": `${count(examples.length, "example")} of ${intent.name}` }),
        element("ul", {}, examples),
      ]),
    );
  }
  return parts;
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
    element("p", { text: `${count(intent.size, "utterance")}, mean confidence ${intent.confidence.toFixed(2)}` }),
    clear,
  );
}

listeners.push(showChosen);
sortRows();
