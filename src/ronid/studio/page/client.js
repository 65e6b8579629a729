// What the pages share: the state as the server tells it, and the one way to act.
import { reactive } from "vue";

export const store = reactive({
  state: null, // answer of /api/state
  now: 0, // version the server has
  run: 0, // version of the run that the server shows
  learning: null, // how far a training is, or how the last one ended
  suggested: -1, // version its suggestions are for
  at: null, // earlier version that is looked at, or null
  route: { page: "overview", id: null, query: "", a: null, b: null },
  toasts: [],
  conflict: null, // {since, retry}
  picking: null, // {title, exclude, choose}
  asking: null, // {title, label, value, say, answer}
  splitting: null, // id of the intent
  help: false,
  failed: "",
  tick: 0, // grows when pages should ask anew
  pending: null, // promise of the action under way
});

let toastId = 0;

export function toast(text, kind = "info", action = null) {
  const item = { id: ++toastId, text, kind, action };
  store.toasts.push(item);
  if (store.toasts.length > 4) store.toasts.shift();
  setTimeout(() => dismiss(item.id), kind === "problem" ? 9000 : 5000);
}

export function dismiss(id) {
  store.toasts = store.toasts.filter((item) => item.id !== id);
}

export async function get(path, parameters = {}) {
  const url = new URL("/api" + path, location.origin);
  for (const [name, value] of Object.entries(parameters))
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  return answer(await fetch(url, { credentials: "same-origin" }));
}

export async function post(path, body) {
  return answer(
    await fetch("/api" + path, {
      method: "POST",
      credentials: "same-origin",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    })
  );
}

async function answer(response) {
  if (response.status === 401) location.href = "/enter?next=" + encodeURIComponent(location.pathname);
  const kind = response.headers.get("content-type") || "";
  const body = kind.includes("json") ? await response.json() : { problem: await response.text() };
  if (response.ok) return body;
  const said = typeof body.problem === "string" ? body.problem : "this cannot be done";
  throw Object.assign(new Error(said), { status: response.status, body });
}

// A key of our own: if the answer is lost, the same call again is not a second action.
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

export function newId() {
  return "n" + newKey().slice(0, 12);
}

async function patiently(path, body) {
  for (let wait = 250; ; wait *= 2) {
    try {
      return await post(path, body);
    } catch (error) {
      if (error.status || wait > 4000) throw error;
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

export async function act(action, seen = null) {
  if (store.at !== null) {
    toast("You are looking at an earlier version; go back to now to change something.", "problem");
    return null;
  }
  const doing = perform({ action, key: newKey(), seen: seen ?? store.state.version });
  store.pending = doing;
  const done = await doing;
  if (store.pending === doing) store.pending = null;
  return done;
}

async function perform(body) {
  try {
    const done = await patiently("/act", body);
    await load();
    toast(sentence(done.says), "done");
    return done;
  } catch (error) {
    if (error.status === 409) {
      await load();
      store.conflict = { since: error.body.conflict, retry: () => act(body.action, error.body.version) };
    } else {
      toast(sentence(error.message), "problem");
      if (!error.status) store.failed = "The server does not answer. Nothing was lost; trying again.";
    }
    return null;
  }
}

export function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".") : "";
}

let loading = null;
let again = false;

// Only one at a time: what comes while one is under way is answered by the next.
export function load() {
  if (loading) {
    again = true;
    return loading;
  }
  loading = (async () => {
    do {
      again = false;
      try {
        const before = store.state?.now;
        store.state = await get("/state", { version: store.at });
        store.failed = "";
        tellOfOthers(before);
        store.now = Math.max(store.now, store.state.now);
        store.tick += 1;
      } catch (error) {
        store.failed = error.status
          ? sentence(error.message)
          : "The server does not answer. Nothing was lost; trying again.";
      }
    } while (again);
    loading = null;
  })();
  return loading;
}

// What others did since we last looked; before the first look there is nothing to tell.
function tellOfOthers(before) {
  if (before === undefined) return;
  for (const each of store.state.latest)
    if (each.seq > before && each.who !== store.state.me.name) toast(each.who + " " + each.says + ".");
}

// The names of intents by id, for menus and lists.
export function intent(id) {
  return store.state?.intents.find((each) => each.id === id) ?? null;
}

export function undo() {
  const last = store.state?.me.undo;
  if (last) act({ kind: "undo", target: last.seq });
  else toast("You have nothing to take back.");
}

export function redo() {
  const last = store.state?.me.redo;
  if (last) act({ kind: "redo", target: last.seq });
  else toast("You have nothing to do again.");
}

export function ask(title, label, value, options = {}) {
  return new Promise((done) => {
    store.asking = { title, label, value, ...options, answer: done };
  });
}

export function pick(title, exclude = [], say = "Choose") {
  return new Promise((done) => {
    store.picking = { title, exclude, say, answer: done };
  });
}

// Where we are, in the address: links can be shared and the browser's way back works.
export function readRoute() {
  const path = location.pathname.split("/").filter(Boolean);
  const query = new URLSearchParams(location.search);
  store.route = {
    page: path[0] || "overview",
    id: path[1] ? decodeURIComponent(path[1]) : null,
    query: query.get("q") || "",
    a: query.get("a"),
    b: query.get("b"),
  };
  const at = query.get("version");
  const before = store.at;
  store.at = at !== null && /^\d+$/.test(at) ? Number(at) : null;
  if (before !== store.at) load();
}

export function go(path, parameters = {}) {
  const url = new URL(path, location.origin);
  const version = "version" in parameters ? parameters.version : store.at;
  for (const [name, value] of Object.entries({ ...parameters, version }))
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  history.pushState({}, "", url);
  readRoute();
  window.scrollTo(0, 0);
}

export const number = new Intl.NumberFormat("en").format;

export function percent(share) {
  return Math.round(100 * share) + "%";
}

export function count(rows) {
  return rows === 1 ? "1 utterance" : number(rows) + " utterances";
}
