// Curves over epochs and the class prior, as SVG drawn at the width it is shown at.
const HEIGHT = 190;
const MARGIN = { left: 44, right: 104, top: 16, bottom: 26 };

function niceTicks(low, high, wanted = 4) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw * 0.999);
  const ticks = [];
  for (let value = Math.floor(low / size); value * size < high + size * 0.999; value += 1) ticks.push(Number((value * size).toPrecision(12)));
  return ticks;
}

function lineChart(chart, width) {
  const every = chart.series.flatMap((series) => series.points);
  const epochs = every.map(([epoch]) => epoch);
  const values = every.map(([, value]) => value);
  const [first, last] = [Math.min(...epochs), Math.max(...epochs)];
  const ticks = niceTicks(Math.min(...values), Math.max(...values));
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  const named = chart.series.length > 1;
  const [right, bottom] = [width - (named ? MARGIN.right : 8), HEIGHT - MARGIN.bottom];
  const x = (epoch) => (last > first ? MARGIN.left + ((epoch - first) / (last - first)) * (right - MARGIN.left) : (MARGIN.left + right) / 2);
  const y = (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - MARGIN.top);

  const svg = drawing("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": spokenChart(chart) });
  // What was looked at may end before what is possible does.
  const within = (place) => x(Math.min(last, Math.max(first, place)));
  if (chart.band) {
    const [from, to] = chart.band.map(within);
    svg.append(drawing("rect", { class: "band", x: from, width: Math.max(1, to - from), y: MARGIN.top, height: bottom - MARGIN.top }));
  }
  for (const tick of ticks) {
    svg.append(drawing("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y(tick), y2: y(tick) }));
    svg.append(drawing("text", { x: MARGIN.left - 8, y: y(tick) + 4, "text-anchor": "end" }, `${tick}${chart.unit}`));
  }
  svg.append(drawing("text", { x: x(first), y: HEIGHT - 6, "text-anchor": last > first ? "start" : "middle" }, `${chart.over} ${first}`));
  if (last > first) svg.append(drawing("text", { x: right, y: HEIGHT - 6, "text-anchor": "end" }, `${last}`));
  chart.series.forEach((series, s) => {
    const path = series.points.map(([epoch, value], i) => `${i ? "L" : "M"}${x(epoch).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    svg.append(drawing("path", { class: `curve s${s % 4}`, d: path }));
    if (chart.mark !== null) return;
    const [epoch, value] = series.points[series.points.length - 1];
    svg.append(drawing("circle", { class: `dot s${s % 4}`, cx: x(epoch), cy: y(value), r: 3 }));
  });
  if (chart.mark !== null) {
    const place = within(chart.mark);
    svg.append(drawing("line", { class: "mark", x1: place, x2: place, y1: MARGIN.top, y2: bottom }));
    svg.append(drawing("text", { class: "mark", x: place + 4, y: MARGIN.top - 4 }, `${chart.mark} taken`));
  }
  for (const { series, s, top } of named ? spreadLabels(chart.series, y) : []) {
    svg.append(drawing("text", { class: `end s${s % 4}`, x: right + 9, y: top + 4 }, series.name));
  }
  return svg;
}

// Names stand at the ends of their curves, pushed apart where the curves meet.
function spreadLabels(allSeries, y) {
  const labels = allSeries
    .map((series, s) => ({ series, s, top: y(series.points[series.points.length - 1][1]) }))
    .sort((a, b) => a.top - b.top);
  for (let i = 1; i < labels.length; i += 1) labels[i].top = Math.max(labels[i].top, labels[i - 1].top + 15);
  const excess = labels.length ? labels[labels.length - 1].top - (HEIGHT - MARGIN.bottom) : 0;
  if (excess > 0) for (const label of labels) label.top -= excess;
  return labels;
}

function spokenChart(chart) {
  const ends = chart.series.map(({ name, points: [[, from], ...rest] }) => `${name} from ${from}${chart.unit} to ${rest.length ? rest[rest.length - 1][1] : from}${chart.unit}`);
  return `${chart.title}: ${ends.join("; ")}`;
}

function drawCurves() {
  byId("curves-section").hidden = !report.charts.length;
  byId("curves").replaceChildren(
    ...report.charts.map((chart) => {
      const caption = element("figcaption", { text: chart.title }, []);
      caption.append(element("span", { text: chart.note }));
      return element("figure", {}, [caption]);
    }),
  );
  [...byId("curves").children].forEach((figure, i) => figure.append(lineChart(report.charts[i], Math.max(240, figure.clientWidth))));
}

const PRIOR_HEIGHT = 200;

function drawPrior() {
  const home = byId("prior");
  const width = Math.max(240, home.clientWidth);
  const bottom = PRIOR_HEIGHT - 8;
  const ticks = niceTicks(0, largest * 100);
  const y = (share) => bottom - ((share * 100) / ticks[ticks.length - 1]) * (bottom - 10);
  const svg = drawing("svg", { viewBox: `0 0 ${width} ${PRIOR_HEIGHT}`, height: PRIOR_HEIGHT, role: "img", "aria-label": `Share found${report.prior ? " and prior" : ""} of each intent; the numbers are in the table of intents` });
  for (const tick of ticks) {
    svg.append(drawing("line", { class: "grid", x1: 44, x2: width, y1: y(tick / 100), y2: y(tick / 100) }));
    svg.append(drawing("text", { x: 36, y: y(tick / 100) + 4, "text-anchor": "end" }, `${tick}%`));
  }
  const sorted = [...report.intents].sort((a, b) => b.size - a.size || a.index - b.index);
  const pitch = (width - 48) / Math.max(sorted.length, 12);
  const bar = Math.max(1, Math.min(26, pitch * 0.7));
  sorted.forEach((intent, i) => {
    const middle = 48 + (i + 0.5) * pitch;
    const group = drawing("g");
    const reach = Math.max(bar / 2 + Math.min(3, pitch * 0.15), 1.5);
    group.append(
      drawing("rect", { class: "hit", x: middle - pitch / 2, y: 0, width: pitch, height: bottom }),
      drawing("rect", { class: kindOf(intent), x: middle - bar / 2, y: y(intent.share), width: bar, height: bottom - y(intent.share), rx: Math.min(2, bar / 3) }),
    );
    if (report.prior) group.append(drawing("line", { class: "tick", x1: middle - reach, x2: middle + reach, y1: y(intent.prior), y2: y(intent.prior) }));
    const told = `${intent.name} (${kindOf(intent)}): ${percent(intent.share)} found${priorOf(intent, ", ")}`;
    group.append(drawing("title", {}, told));
    group.addEventListener("pointerenter", () => (byId("prior-note").textContent = told));
    svg.append(group);
  });
  home.replaceChildren(svg);
}

let chartWidth = 0;
new ResizeObserver(() => {
  if (byId("prior").clientWidth === chartWidth) return;
  chartWidth = byId("prior").clientWidth;
  drawPrior();
  drawCurves();
}).observe(byId("prior"));
