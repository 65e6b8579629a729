// All utterances on a plane: zoom, hover, draw around some, compare two intents.
import { count, get, go, intent, number, post, store } from "ronid-studio/client.js";
import { bounds, centres, colour, shuffled, visible, within } from "ronid-studio/points.js";
import Rows from "ronid-studio/rows.js";

let kept = null; // places on the map change only when utterances come, so they are asked for once

async function binary(path, type) {
  const response = await fetch("/api" + path, { credentials: "same-origin" });
  if (!response.ok) throw new Error(await response.text());
  return new type(await response.arrayBuffer());
}

export default {
  components: { Rows },
  props: { dark: Boolean },
  data: () => ({ store, drawn: 0, all: 0, lasso: false, hovered: null, chosen: null, ready: false, failed: "", names: true }),
  template: `
  <div class="map">
    <div class="plane" ref="plane" role="img" :aria-label="'Map of ' + number(store.state.utterances) + ' utterances; every intent has a page with the same utterances as a list'"></div>
    <p v-if="failed" class="none">{{ failed }}</p>
    <div class="tools floating" role="toolbar" aria-label="Map">
      <div class="toggle" role="group" aria-label="What dragging does"><button :aria-pressed="!lasso" @click="use(false)">Move</button><button :aria-pressed="lasso" @click="use(true)">Draw around</button></div>
      <button class="small" @click="reset">Whole map</button>
      <button class="small" :aria-pressed="names" @click="names = !names; draw()">Names</button>
      <span class="quiet" aria-live="polite">{{ drawn < all ? number(drawn) + " of " : "" }}{{ number(all) }} points</span>
    </div>
    <aside class="side" aria-label="On the map">
      <section class="legend"><h2>Compare</h2>
        <div v-for="(slot, place) in ['a', 'b']" :key="slot" class="pickrow"><span class="swatch" :class="slot" aria-hidden="true"></span><label class="unseen" :for="'show' + slot">{{ place ? "Second intent" : "First intent" }}</label>
          <select :id="'show' + slot" :value="store.route[slot] ?? ''" @change="compare(slot, $event.target.value)"><option value="">{{ place ? "another intent" : "an intent" }}</option><option v-for="each in sorted" :key="each.id" :value="each.id">{{ each.name }} ({{ number(each.size) }})</option></select>
          <a v-if="store.route[slot]" :href="'/intent/' + store.route[slot]" @click.prevent="go('/intent/' + store.route[slot])">open</a></div>
        <p v-if="store.route.query" class="pickrow"><span class="swatch q" aria-hidden="true"></span>{{ hits ? number(hits.length) : "…" }} with “{{ store.route.query }}” <button class="link" @click="go('/map', { a: store.route.a, b: store.route.b })">clear</button></p>
      </section>
      <section v-if="chosen"><div class="row"><h2 class="grow">Drawn around</h2><button class="small plain" @click="unchoose">Clear</button></div>
        <rows :key="chosen.all.length" ref="rows" :rows="chosen.rows" :total="chosen.total" :all="chosen.all" label="Utterances drawn around" show-intent @hover="point" /></section>
      <section v-else class="hovering"><h2>Under the pointer</h2>
        <p v-if="hovered" dir="auto">{{ hovered.text }}</p><p v-if="hovered" class="quiet">{{ hovered.intent?.name ?? "out of scope" }}</p>
        <p v-else class="quiet">Point at an utterance to read it, click it to open its intent, or draw around some to act on them.</p></section>
    </aside>
  </div>`,
  computed: {
    sorted: () => [...store.state.intents].filter((each) => each.size).sort((a, b) => a.name.localeCompare(b.name)),
  },
  watch: {
    dark: "draw",
    "store.tick": "refresh",
    "store.route": { deep: true, handler: "refresh" },
  },
  created() {
    this.hits = null;
    this.texts = new Map();
  },
  async mounted() {
    try {
      const [{ Plotly }] = await Promise.all([import("nicegui-plotly"), this.place()]);
      this.Plotly = Plotly;
      await this.refresh();
      this.listen();
      this.ready = true;
    } catch (error) {
      this.failed = "The map cannot be drawn here: " + error.message;
    }
  },
  unmounted() {
    if (this.Plotly) this.Plotly.purge(this.$refs.plane);
    this.watcher?.disconnect();
  },
  methods: {
    count, go, number,
    async place() {
      if (kept?.length !== 2 * store.state.utterances) kept = await binary("/points", Float32Array);
      if (this.points === kept) return;
      this.points = kept;
      this.order = shuffled(kept.length / 2);
      this.box = bounds(kept);
    },
    async refresh() {
      if (!this.Plotly) return;
      await this.place();
      this.places = await binary("/places" + (store.at === null ? "" : "?version=" + store.at), Int32Array);
      const query = store.route.query;
      if (!query) [this.hits, this.asked] = [null, ""];
      else if (this.asked !== query) {
        this.hits = (await get("/search", { q: query })).all;
        this.asked = query;
      }
      if (this.chosen) await this.choose(this.chosen.all);
      this.$forceUpdate();
      await this.draw();
    },
    // The colour of every slot: all in their own, or only what is looked at.
    paint() {
      const [a, b] = [store.route.a, store.route.b].map((id) => (id ? intent(id)?.slot ?? -9 : -9));
      const grey = this.dark ? "rgba(150,155,170,.16)" : "rgba(110,115,130,.16)";
      const hits = this.hits ? new Set(this.hits) : null;
      const only = a !== -9 || b !== -9 || hits;
      return (row) => {
        const slot = this.places[row];
        if (hits?.has(row)) return this.dark ? "#ffd166" : "#d9480f";
        if (slot === a) return this.dark ? "#6ea8fe" : "#2563eb";
        if (slot === b) return this.dark ? "#ff9f7a" : "#e8590c";
        return only || slot < 0 ? grey : colour(slot, this.dark);
      };
    },
    first() {
      const slots = [store.route.a, store.route.b].filter(Boolean).map((id) => intent(id)?.slot);
      if (!slots.length && !this.hits) return null;
      const rows = [];
      for (let row = 0; row < this.places.length; row++) if (slots.includes(this.places[row])) rows.push(row);
      return [...(this.hits ?? []), ...rows];
    },
    async draw() {
      if (!this.Plotly || !this.places) return;
      const first = this.first();
      const { rows, all } = visible(this.points, this.order, this.box, first);
      if (first) rows.reverse(); // what is looked at is drawn last, above the rest
      [this.drawn, this.all, this.shown] = [rows.length, all, rows];
      const paint = this.paint();
      const size = rows.length > 8000 ? 4 : rows.length > 2500 ? 5 : 7;
      const dots = {
        type: "scattergl", mode: "markers", hoverinfo: "none",
        x: rows.map((row) => this.points[2 * row]), y: rows.map((row) => this.points[2 * row + 1]),
        marker: { size, color: rows.map(paint), opacity: 0.85 },
        selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 0.85 } },
      };
      const plane = this.$refs.plane;
      if (!plane.data) await this.Plotly.newPlot(plane, [dots], this.layout(), { displayModeBar: false, scrollZoom: true, doubleClick: false });
      else await this.Plotly.update(plane, { x: [dots.x], y: [dots.y], marker: [dots.marker] }, this.changed(), [0]);
    },
    layout() {
      const axis = (low, high) => ({ range: [low, high], visible: false, fixedrange: false, zeroline: false });
      return {
        margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        xaxis: axis(this.box[0], this.box[1]), yaxis: axis(this.box[2], this.box[3]),
        showlegend: false, dragmode: this.lasso ? "lasso" : "pan", hovermode: "closest", hoverdistance: 12,
        annotations: this.names ? this.labels() : [],
        newselection: { line: { color: this.dark ? "#fff" : "#111", width: 1.5, dash: "solid" } },
      };
    },
    changed() {
      const { xaxis, yaxis, dragmode, annotations } = this.layout();
      const kept = this.chosen ? {} : { selections: [] };
      return { "xaxis.range": xaxis.range, "yaxis.range": yaxis.range, dragmode, annotations, ...kept };
    },
    // The names of the largest intents in view that have room for one.
    labels() {
      const [x0, x1, y0, y1] = this.box;
      const wide = this.$refs.plane.clientWidth || 900, high = this.$refs.plane.clientHeight || 600;
      const by = new Map(store.state.intents.map((each) => [each.slot, each]));
      const wanted = [store.route.a, store.route.b].filter(Boolean);
      const taken = [], found = [];
      const all = [...centres(this.points, this.places)].filter(([slot, [x, y]]) => by.has(slot) && x > x0 && x < x1 && y > y0 && y < y1);
      all.sort((a, b) => wanted.includes(by.get(b[0]).id) - wanted.includes(by.get(a[0]).id) || b[1][2] - a[1][2]);
      for (const [slot, [x, y]] of all) {
        const each = by.get(slot);
        if ((wanted.length || this.hits) && !wanted.includes(each.id)) continue;
        const name = each.name.length > 28 ? each.name.slice(0, 27) + "…" : each.name;
        const px = ((x - x0) / (x1 - x0)) * wide, py = ((y - y0) / (y1 - y0)) * high, w = 3.6 * name.length + 6;
        if (taken.some(([tx, ty, tw]) => Math.abs(px - tx) < w + tw && Math.abs(py - ty) < 17)) continue;
        taken.push([px, py, w]);
        found.push({
          x, y, yshift: 13, text: escapeMarkup(name), showarrow: false, captureevents: false,
          font: { size: 12, color: this.dark ? "#eceef4" : "#151824", family: "system-ui, sans-serif", weight: 600 },
        });
        if (found.length >= 45) break;
      }
      return found;
    },
    listen() {
      const plane = this.$refs.plane;
      let timer = 0;
      plane.on("plotly_relayout", () => {
        const { xaxis, yaxis } = plane._fullLayout;
        const box = [...xaxis.range, ...yaxis.range];
        if (box.every((value, i) => Math.abs(value - this.box[i]) < 1e-9)) return;
        this.box = box;
        clearTimeout(timer);
        timer = setTimeout(() => this.draw(), 90);
      });
      plane.on("plotly_hover", (event) => this.hover(this.shown[event.points[0].pointIndex]));
      plane.on("plotly_click", (event) => {
        const slot = this.places[this.shown[event.points[0].pointIndex]];
        const each = store.state.intents.find((one) => one.slot === slot);
        if (each && !this.lasso) go("/intent/" + each.id);
      });
      plane.on("plotly_selected", (event) => {
        const { x, y } = event?.lassoPoints ?? {};
        if (x?.length > 2) this.choose(within(this.points, x, y));
      });
      this.watcher = new ResizeObserver(() => this.Plotly.Plots.resize(plane));
      this.watcher.observe(plane);
    },
    async hover(row) {
      this.wanted = row;
      if (!this.texts.has(row)) {
        await new Promise((done) => setTimeout(done, 40));
        if (this.wanted !== row) return;
        this.texts.set(row, (await post("/rows", { rows: [row] })).rows[0]);
      }
      if (this.wanted === row) this.hovered = this.texts.get(row);
    },
    async choose(rows) {
      this.chosen = rows.length ? await post("/rows", { rows }) : null;
    },
    unchoose() {
      this.chosen = null;
      this.draw();
    },
    point() {},
    use(lasso) {
      this.lasso = lasso;
      this.draw();
    },
    reset() {
      this.box = bounds(this.points);
      this.draw();
    },
    compare(slot, id) {
      go("/map", { q: store.route.query, a: store.route.a, b: store.route.b, [slot]: id || null });
    },
  },
};

// Plotly reads some markup in its texts; names are shown as they are.
function escapeMarkup(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
