// What can be done with one intent, by key and by button; used wherever intents are shown.
import { act, ask, get, pick, store } from "ronid-studio/client.js";

export const accept = (each) => act({ kind: each.status === "accepted" ? "reopen" : "accept", intent: each.id });
export const reject = (each) => act({ kind: each.status === "rejected" ? "reopen" : "reject", intent: each.id });
export const lock = (each) => act({ kind: each.locked ? "unlock" : "lock", intent: each.id });
export const reopen = (each) => act({ kind: "reopen", intent: each.id });

export async function rename(each) {
  const hint = await get("/intent/" + each.id + "/name").then((found) => found.name, () => null);
  const name = await ask("Rename “" + each.name + "”", "Name", each.name, { hint: hint !== each.name ? hint : null });
  if (name && name !== each.name) await act({ kind: "rename", intent: each.id, name });
}

export async function describe(each) {
  const now = each.description ?? (await get("/intent/" + each.id, { version: store.at })).description;
  const description = await ask("Describe “" + each.name + "”", "What it is about", now, { long: true });
  if (description !== null && description !== now) await act({ kind: "describe", intent: each.id, description });
}

export async function merge(each) {
  const chosen = pick("Merge “" + each.name + "” with", [each.id]);
  store.picking.near = (each.nearest ?? []).map((near) => near.id);
  const other = await chosen;
  if (other) await mergeBoth(each.id, other);
}

// The known one stays, or else the larger one.
export function mergeBoth(one, other) {
  const both = store.state.intents.filter((each) => each.id === one || each.id === other);
  const into = both.sort((a, b) => b.known - a.known || b.size - a.size)[0]?.id ?? one;
  return act({ kind: "merge", intents: [one, other], into });
}

export function split(each) {
  store.splitting = each.id;
}

export const intentActs = { a: accept, r: reject, l: lock, e: rename, d: describe, m: merge, s: split, u: reopen };
