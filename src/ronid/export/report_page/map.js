// The map: one sprite per intent stamped on a canvas, so that 20,000 marks pan without stutter.
const points = report.points;
const canvas = byId("map");
const pen = canvas.getContext("2d");
const view = { zoom: 1, panX: 0, panY: 0, width: 0, height: 0, pixels: 1 };
const PADDING = 42;
const MAX_ZOOM = 60;
const MAX_STRETCH = 1.7;
let current = -1; // the utterance under the pointer or the keyboard
let sprites = new Map();
let frame = 0;

const bounds = [points.x, points.y].map((axis) => {
  let low = Infinity;
  let high = -Infinity;
  for (const value of axis) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return axis.length && high > low ? [low, high] : [(low || 0) - 1, (low || 0) + 1];
});

function fit() {
  const [x, y] = bounds;
  let scaleX = (view.width - 2 * PADDING) / (x[1] - x[0]);
  let scaleY = (view.height - 2 * PADDING) / (y[1] - y[0]);
  scaleX = Math.min(scaleX, scaleY * MAX_STRETCH);
  scaleY = Math.min(scaleY, scaleX * MAX_STRETCH);
  return { scaleX: scaleX * view.zoom, scaleY: scaleY * view.zoom, midX: (x[0] + x[1]) / 2, midY: (y[0] + y[1]) / 2 };
}

function toScreen(fitted, x, y) {
  return [
    view.width / 2 + (x - fitted.midX) * fitted.scaleX + view.panX,
    view.height / 2 - (y - fitted.midY) * fitted.scaleY + view.panY,
  ];
}

function radius() {
  const base = points.x.length > 8000 ? 2.1 : points.x.length > 2500 ? 2.7 : 3.6;
  return Math.round(4 * base * Math.min(2.4, view.zoom ** 0.4)) / 4;
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function colour(index) {
  // Golden-angle hues keep neighbours in the table apart; known intents stay quiet in the back.
  const hue = Math.round((index * 137.508 + 20) % 360);
  if (report.intents[index].known) return dark.matches ? `hsl(${hue} 22% 52%)` : `hsl(${hue} 26% 66%)`;
  return dark.matches ? `hsl(${hue} 78% 66%)` : `hsl(${hue} 72% 42%)`;
}

function shape(target, known, x, y, size) {
  target.beginPath();
  if (known) target.arc(x, y, size, 0, 2 * Math.PI);
  else {
    const reach = size * 1.32;
    target.moveTo(x, y - reach);
    target.lineTo(x + reach, y);
    target.lineTo(x, y + reach);
    target.lineTo(x - reach, y);
    target.closePath();
  }
}

function sprite(index, size) {
  const key = `${index} ${size}`;
  if (!sprites.has(key)) {
    const half = Math.ceil((size * 1.4 + 1) * view.pixels);
    const stamp = document.createElement("canvas");
    stamp.width = stamp.height = 2 * half;
    const ink = stamp.getContext("2d");
    const known = index >= 0 ? report.intents[index].known : index === -1;
    ink.fillStyle = index >= 0 ? colour(index) : cssColour("--line");
    shape(ink, known, half, half, size * view.pixels);
    ink.fill();
    sprites.set(key, stamp);
  }
  return sprites.get(key);
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Known intents are drawn first: the discovered ones are what the reader came for.
const drawOrder = [...points.text.keys()].sort(
  (a, b) => Number(report.intents[points.intent[b]].known) - Number(report.intents[points.intent[a]].known),
);

function draw() {
  frame = 0;
  const { lit } = matches();
  const fitted = fit();
  const size = radius();
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const passes = filtered() ? [0, 1] : [1];
  for (const pass of passes) {
    pen.globalAlpha = pass || dark.matches ? 0.86 : 1;
    for (const i of drawOrder) {
      const intent = report.intents[points.intent[i]];
      if (lit[i] !== pass || !state[kindOf(intent)]) continue;
      const [x, y] = toScreen(fitted, points.x[i], points.y[i]);
      if (x < -9 || y < -9 || x > view.width + 9 || y > view.height + 9) continue;
      const stamp = sprite(pass ? points.intent[i] : intent.known ? -1 : -2, size);
      pen.drawImage(stamp, Math.round(x * view.pixels - stamp.width / 2), Math.round(y * view.pixels - stamp.height / 2));
    }
  }
  pen.globalAlpha = 1;
  pen.setTransform(view.pixels, 0, 0, view.pixels, 0, 0);
  drawLabels(fitted);
  if (current >= 0) drawCurrent(fitted, size);
}

function drawCurrent(fitted, size) {
  const [x, y] = toScreen(fitted, points.x[current], points.y[current]);
  pen.lineWidth = 2;
  pen.strokeStyle = cssColour("--ink");
  shape(pen, report.intents[points.intent[current]].known, x, y, size + 3);
  pen.stroke();
}

const centres = (() => {
  const members = report.intents.map(() => []);
  points.intent.forEach((intent, i) => members[intent].push(i));
  const median = (rows, axis) => rows.map((i) => axis[i]).sort((a, b) => a - b)[rows.length >> 1];
  return members.map((rows) => (rows.length ? [median(rows, points.x), median(rows, points.y)] : null));
})();

// Larger intents are labelled first; a label that would touch another waits for a closer zoom.
function drawLabels(fitted) {
  const wanted = report.intents
    .map((intent, index) => ({ intent, index }))
    .filter(({ intent, index }) => centres[index] && state[kindOf(intent)] && labelled(intent, index))
    .sort((a, b) => b.intent.size - a.intent.size);
  const placed = [];
  pen.font = `600 12.5px ${getComputedStyle(document.body).fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  for (const { intent, index } of wanted) {
    const name = intent.name.length > 34 ? `${intent.name.slice(0, 33)}…` : intent.name;
    const half = pen.measureText(name).width / 2 + 5;
    const [x, y] = toScreen(fitted, ...centres[index]);
    if (x < 0 || y < 0 || x > view.width || y > view.height) continue;
    const middle = Math.max(half + 4, Math.min(view.width - half - 4, x));
    for (const shift of [0, -15, 15]) {
      const box = [middle - half, y + shift - 10, middle + half, y + shift + 10];
      if (placed.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      placed.push(box);
      pen.lineWidth = 4.5;
      pen.strokeStyle = cssColour("--surface");
      pen.strokeText(name, middle, y + shift);
      pen.fillStyle = cssColour("--ink");
      pen.fillText(name, middle, y + shift);
      break;
    }
  }
}

function labelled(intent, index) {
  return state.selected === null ? !intent.known && !state.query.trim() : state.selected === index;
}

function redraw() {
  if (!frame) frame = requestAnimationFrame(draw);
}

function resize() {
  const box = byId("stage").getBoundingClientRect();
  view.width = box.width - 2;
  view.height = box.height - 2;
  view.pixels = window.devicePixelRatio || 1;
  canvas.width = Math.round(view.width * view.pixels);
  canvas.height = Math.round(view.height * view.pixels);
  sprites = new Map();
  redraw();
}

// Finding the utterance under the pointer: a coarse grid, so that each move looks at few marks.
const CELLS = 80;
const cells = new Map();
const cellOf = (value, [low, high]) => Math.max(0, Math.min(CELLS - 1, Math.floor(((value - low) / (high - low)) * CELLS)));
points.x.forEach((x, i) => {
  const key = cellOf(x, bounds[0]) * CELLS + cellOf(points.y[i], bounds[1]);
  if (!cells.has(key)) cells.set(key, []);
  cells.get(key).push(i);
});

function nearest(screenX, screenY, reach = 14) {
  const fitted = fit();
  const x = fitted.midX + (screenX - view.width / 2 - view.panX) / fitted.scaleX;
  const y = fitted.midY - (screenY - view.height / 2 - view.panY) / fitted.scaleY;
  const { lit } = matches();
  let best = -1;
  let bestDistance = reach;
  for (let column = cellOf(x - reach / fitted.scaleX, bounds[0]); column <= cellOf(x + reach / fitted.scaleX, bounds[0]); column += 1) {
    for (let row = cellOf(y - reach / fitted.scaleY, bounds[1]); row <= cellOf(y + reach / fitted.scaleY, bounds[1]); row += 1) {
      for (const i of cells.get(column * CELLS + row) || []) {
        const distance = Math.hypot((points.x[i] - x) * fitted.scaleX, (points.y[i] - y) * fitted.scaleY);
        if (lit[i] && distance < bestDistance) [best, bestDistance] = [i, distance];
      }
    }
  }
  return best;
}

function zoomBy(factor, x = view.width / 2, y = view.height / 2) {
  const zoom = Math.max(1, Math.min(MAX_ZOOM, view.zoom * factor));
  const ratio = zoom / view.zoom;
  view.panX = (view.panX + view.width / 2 - x) * ratio - view.width / 2 + x;
  view.panY = (view.panY + view.height / 2 - y) * ratio - view.height / 2 + y;
  view.zoom = zoom;
  panBy(0, 0);
}

function panBy(dx, dy) {
  // The map cannot be lost: its middle stays within reach of the window.
  const limitX = (view.width / 2) * (2 * view.zoom - 1);
  const limitY = (view.height / 2) * (2 * view.zoom - 1);
  view.panX = Math.max(-limitX, Math.min(limitX, view.panX + dx));
  view.panY = Math.max(-limitY, Math.min(limitY, view.panY + dy));
  showTip();
  redraw();
}

function resetView() {
  Object.assign(view, { zoom: 1, panX: 0, panY: 0 });
  showTip();
  redraw();
}
