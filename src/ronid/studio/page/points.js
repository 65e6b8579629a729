// Points of the map: which to draw, in which colour, and which lie inside a line drawn by hand.

export const MOST_DRAWN = 10000;

// A fixed random order: zooming in adds points, and none of those drawn before goes.
export function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 1234567;
  for (let i = n - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = seed % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

// The rows within a window, at most `most`; `first` are always among them.
export function visible(points, order, box, first = null, most = MOST_DRAWN) {
  const inside = (row) => {
    const x = points[2 * row], y = points[2 * row + 1];
    return x >= box[0] && x <= box[1] && y >= box[2] && y <= box[3];
  };
  const rows = [];
  if (first) for (const row of first) if (rows.length < most && inside(row)) rows.push(row);
  const taken = first ? new Set(rows) : null;
  let all = rows.length;
  for (const row of order) {
    if (!inside(row) || taken?.has(row)) continue;
    all += 1;
    if (rows.length < most) rows.push(row);
  }
  return { rows, all };
}

export function bounds(points) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    x0 = Math.min(x0, points[i]);
    x1 = Math.max(x1, points[i]);
    y0 = Math.min(y0, points[i + 1]);
    y1 = Math.max(y1, points[i + 1]);
  }
  const [dx, dy] = [(x1 - x0 || 1) * 0.04, (y1 - y0 || 1) * 0.04];
  return [x0 - dx, x1 + dx, y0 - dy, y1 + dy];
}

// All rows inside a polygon, those that are not drawn too.
export function within(points, xs, ys) {
  const box = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const found = [];
  for (let row = 0; row < points.length / 2; row++) {
    const x = points[2 * row], y = points[2 * row + 1];
    if (x < box[0] || x > box[1] || y < box[2] || y > box[3]) continue;
    let odd = false;
    for (let i = 0, j = xs.length - 1; i < xs.length; j = i++)
      if (ys[i] > y !== ys[j] > y && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) odd = !odd;
    if (odd) found.push(row);
  }
  return found;
}

const kept = new WeakMap(); // zooming asks again and again

// Where the name of every intent goes: the median, which a few points far off do not pull away.
export function centres(points, places) {
  if (kept.get(places)?.points === points) return kept.get(places).found;
  const rows = new Map();
  for (let row = 0; row < places.length; row++)
    if (places[row] >= 0) (rows.get(places[row]) ?? rows.set(places[row], []).get(places[row])).push(row);
  const median = (some, by) => Float32Array.from(some, (row) => points[2 * row + by]).sort()[some.length >> 1];
  const found = new Map([...rows].map(([slot, some]) => [slot, [median(some, 0), median(some, 1), some.length]]));
  kept.set(places, { points, found });
  return found;
}

// Colours that neighbours in number do not share; the golden angle goes round without repeating.
export function colour(slot, dark) {
  const hue = (slot * 137.508) % 360;
  const light = dark ? 62 + (slot % 3) * 7 : 44 + (slot % 3) * 7;
  return `hsl(${hue.toFixed(0)}, ${dark ? 62 : 58}%, ${light}%)`;
}
