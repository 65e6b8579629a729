// What the page shows, in one place: parts read it and are told when it changes.
const report = JSON.parse(document.getElementById("report-data").textContent);
const state = { selected: null, query: "", known: true, new: true, version: 0 };
const listeners = [];

function change(update) {
  Object.assign(state, update);
  state.version += 1;
  for (const listener of listeners) listener();
}

function byId(id) {
  return document.getElementById(id);
}

// Utterances are strangers' text: every string enters the page as a text node, never as markup.
function element(tag, { text, className, ...attributes } = {}, children = []) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function drawing(tag, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const wholeNumber = new Intl.NumberFormat("en");
const count = (value, noun) => `${wholeNumber.format(value)} ${noun}${value === 1 ? "" : "s"}`;
const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}%`;
const kindOf = (intent) => (intent.known ? "known" : "new");

function badge(intent) {
  const kind = kindOf(intent);
  const mark = byId(`show-${kind}`).parentElement.querySelector("svg").cloneNode(true);
  return element("span", { className: `badge ${kind}` }, [mark, intent.known ? "Known" : "New"]);
}

// Which utterances the search, the chosen intent and the toggles leave; rebuilt once per change.
const lowered = [];
const matching = { version: -1, lit: new Uint8Array(report.points.text.length), count: 0 };

function matches() {
  if (matching.version === state.version) return matching;
  const { text, intent } = report.points;
  const query = state.query.trim().toLowerCase();
  if (query && !lowered.length) for (const each of text) lowered.push(each.toLowerCase());
  matching.count = 0;
  for (let i = 0; i < text.length; i += 1) {
    const lit =
      state[kindOf(report.intents[intent[i]])] &&
      (state.selected === null || state.selected === intent[i]) &&
      (!query || lowered[i].includes(query));
    matching.lit[i] = lit ? 1 : 0;
    matching.count += matching.lit[i];
  }
  matching.version = state.version;
  return matching;
}

const filtered = () => state.selected !== null || state.query.trim() !== "";
