// All intents: how far the review is, what is suggested, and a table or cards to work through.
import { act, go, number, percent, pick, ask, store } from "ronid-studio/client.js";
import { intentActs } from "ronid-studio/acts.js";
import { pageKeys } from "ronid-studio/keys.js";
import Suggested from "ronid-studio/suggested.js";

const FILTERS = [
  ["all", "All", () => true],
  ["open", "Open", (each) => each.status === "open"],
  ["new", "New", (each) => !each.known],
  ["known", "Known", (each) => each.known],
  ["suggested", "With a suggestion", (each) => each.suggests.length || each.doubts],
  ["stale", "Stale name", (each) => each.stale],
  ["accepted", "Accepted", (each) => each.status === "accepted"],
  ["rejected", "Rejected", (each) => each.status === "rejected"],
  ["locked", "Locked", (each) => each.locked],
];
const COLUMNS = [
  ["name", "Intent"],
  ["size", "Utterances"],
  ["confidence", "Confidence"],
  ["confirmed", "Confirmed"],
  ["status", "Status"],
  ["suggests", "Suggestion"],
];

export default {
  components: { Suggested },
  mixins: [pageKeys],
  data: () => ({
    store, filters: FILTERS, columns: COLUMNS,
    filter: "all", typed: "", sort: "suggests", down: true, cards: false, at: 0, chosen: new Set(),
  }),
  template: `
  <div class="page split">
    <div class="stats" aria-label="Progress of the review">
      <div class="stat big"><b>{{ percent(progress.rows / Math.max(progress.of, 1)) }}</b><span>of {{ number(progress.of) }} utterances decided</span>
        <div class="meter" role="img" :aria-label="number(progress.rows) + ' of ' + number(progress.of) + ' utterances decided'"><i :style="{ width: 100 * progress.rows / Math.max(progress.of, 1) + '%' }"></i></div></div>
      <div class="stat"><b>{{ number(progress.open) }}</b><span>intents open</span></div>
      <div class="stat good"><b>{{ number(progress.accepted) }}</b><span>accepted</span></div>
      <div class="stat bad"><b>{{ number(progress.rejected) }}</b><span>rejected</span></div>
      <a class="stat" href="/out" @click.prevent="go('/out')"><b>{{ number(progress.out) }}</b><span>out of scope</span></a>
      <div class="stat"><b>{{ number(fresh) }}</b><span>new intents</span></div>
    </div>
    <section class="left" aria-label="Intents">
      <div class="filters">
        <div class="chips" role="group" aria-label="Show">
          <button v-for="[key, name] in shownFilters" :key="key" class="chip" :aria-pressed="filter === key" @click="filter = key; at = 0">{{ name }}<span class="count">{{ number(counts[key]) }}</span></button>
        </div>
        <label class="unseen" for="filter">Filter by name</label>
        <input id="filter" v-model="typed" type="search" placeholder="Filter by name" autocomplete="off" spellcheck="false" @input="at = 0">
        <div class="toggle" role="group" aria-label="Show as">
          <button :aria-pressed="!cards" @click="cards = false">Table</button><button :aria-pressed="cards" @click="cards = true">Cards</button>
        </div>
      </div>
      <div class="acts" v-if="chosen.size" role="toolbar" aria-label="What to do with the chosen intents">
        <span class="grow">{{ chosen.size }} chosen</span>
        <button class="small" @click="merge" aria-keyshortcuts="m">Merge<kbd>m</kbd></button>
        <button class="small plain" @click="chosen = new Set()">Clear</button>
      </div>
      <div v-if="!cards" class="tablebox" ref="box" tabindex="0" aria-label="Intents; j and k move, Enter opens">
        <table class="intents">
          <thead><tr>
            <th class="pick"><span class="unseen">Choose</span></th>
            <th v-for="[key, name] in columns" :key="key" :class="key" scope="col" :aria-sort="sort === key ? (down ? 'descending' : 'ascending') : 'none'"><button @click="sortBy(key)">{{ name }}<span class="dir" aria-hidden="true">{{ sort === key ? (down ? "↓" : "↑") : "" }}</span></button></th>
          </tr></thead>
          <tbody>
            <tr v-for="(each, place) in shown" :key="each.id" :class="[each.status, { at: place === at, chosen: chosen.has(each.id) }]" @click="at = place">
              <td class="pick"><input type="checkbox" :checked="chosen.has(each.id)" @change="choose(each.id)" :aria-label="'Choose ' + each.name" tabindex="-1"></td>
              <td class="name"><a :href="'/intent/' + each.id" @click.prevent.stop="go('/intent/' + each.id)" dir="auto" tabindex="-1">{{ each.name }}</a>
                <span class="tag" :class="each.known ? 'known' : 'new'">{{ each.known ? "known" : "new" }}</span><span v-if="each.locked" class="tag lock">locked</span><span v-if="each.stale" class="tag stale" title="Many of its utterances came or went since it was named">name stale</span></td>
              <td class="size num">{{ number(each.size) }}<span class="bar"><i :style="{ width: 100 * each.size / largest + '%' }"></i></span></td>
              <td class="confidence num">{{ each.size ? percent(each.confidence) : "–" }}</td>
              <td class="confirmed num">{{ each.size ? percent(each.confirmed / each.size) : "–" }}</td>
              <td class="status"><span class="state" :class="each.status">{{ each.status }}</span></td>
              <td class="suggests"><span v-if="each.suggests.length" :title="each.suggests[0].words"><span class="quiet num">{{ percent(each.suggests[0].chance) }}</span> {{ each.suggests[0].words }}</span><span v-else-if="each.doubts" class="quiet">{{ number(each.doubts) }} doubtful</span></td>
            </tr>
          </tbody>
        </table>
        <p v-if="!shown.length" class="none">No intent is like that.</p>
      </div>
      <div v-else class="cards">
        <a v-for="(each, place) in shown" :key="each.id" class="card" :class="[each.status, { at: place === at }]" :href="'/intent/' + each.id" @click.prevent="go('/intent/' + each.id)">
          <span class="name" dir="auto">{{ each.name }}</span>
          <span><span class="tag" :class="each.known ? 'known' : 'new'">{{ each.known ? "known" : "new" }}</span><span v-if="each.locked" class="tag lock">locked</span><span v-if="each.stale" class="tag stale">name stale</span></span>
          <span class="row"><span class="num"><b>{{ number(each.size) }}</b> <span class="quiet">utterances</span></span><span class="state" :class="each.status">{{ each.status }}</span></span>
          <span class="bar wide"><i :style="{ width: 100 * each.confidence + '%' }"></i></span>
          <span class="quiet">{{ each.suggests[0]?.words ?? (each.doubts ? each.doubts + " doubtful" : percent(each.confidence) + " confidence") }}</span>
        </a>
        <p v-if="!shown.length" class="none">No intent is like that.</p>
      </div>
    </section>
    <aside class="right" aria-label="Suggestions">
      <h2>Suggestions <span class="count" v-if="suggestions.length">{{ suggestions.length }}</span></h2>
      <p v-if="store.state.suggested < 0" class="quiet">Looking for intents to merge and to split …</p>
      <p v-else-if="!store.state.vectors" class="quiet">This run keeps no vectors, so nothing can be suggested.</p>
      <p v-else-if="!suggestions.length" class="quiet">Nothing looks like it should be merged or split.</p>
      <suggested v-for="each in suggestions.slice(0, 12)" :key="each.kind + each.intents.map((one) => one.id).join()" :suggestion="each" />
      <p v-if="suggestions.length > 12" class="quiet">and {{ suggestions.length - 12 }} more, weaker ones</p>
    </aside>
  </div>`,
  computed: {
    progress: () => store.state.progress,
    suggestions: () => store.state.suggestions,
    fresh: () => store.state.intents.filter((each) => !each.known).length,
    largest: () => Math.max(1, ...store.state.intents.map((each) => each.size)),
    counts: () => Object.fromEntries(FILTERS.map(([key, , test]) => [key, store.state.intents.filter(test).length])),
    shownFilters() {
      return FILTERS.filter(([key]) => ["all", "open", "new", "known"].includes(key) || this.counts[key] || this.filter === key);
    },
    shown() {
      const test = FILTERS.find(([key]) => key === this.filter)[2];
      const word = this.typed.trim().toLowerCase();
      const value = {
        name: (each) => each.name.toLowerCase(),
        status: (each) => each.status,
        confirmed: (each) => each.confirmed / Math.max(each.size, 1),
        suggests: (each) => (each.suggests[0]?.chance ?? 0) + Math.min(each.doubts, 100) / 1e4 + (each.status === "open" ? 0 : -2),
      }[this.sort] ?? ((each) => each[this.sort]);
      return store.state.intents
        .filter((each) => test(each) && (!word || each.name.toLowerCase().includes(word)))
        .map((each) => [value(each), each])
        .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0) * (this.down ? -1 : 1) || b[1].size - a[1].size || a[1].slot - b[1].slot)
        .map((pair) => pair[1]);
    },
  },
  mounted() {
    this.$refs.box?.focus({ preventScroll: true });
  },
  methods: {
    act, go, number, percent,
    sortBy(key) {
      if (this.sort === key) this.down = !this.down;
      else [this.sort, this.down] = [key, key !== "name"];
      this.at = 0;
    },
    choose(id) {
      if (!this.chosen.delete(id)) this.chosen.add(id);
    },
    step(by) {
      this.at = Math.max(0, Math.min(this.shown.length - 1, this.at + by));
      this.$nextTick(() => this.$el.querySelector("tr.at, .card.at")?.scrollIntoView({ block: "nearest" }));
    },
    key(event) {
      const each = this.shown[this.at];
      const keys = {
        j: () => this.step(1), ArrowDown: () => this.step(1), k: () => this.step(-1), ArrowUp: () => this.step(-1),
        x: () => each && this.choose(each.id), Escape: () => (this.chosen = new Set()),
        Enter: () => each && go("/intent/" + each.id),
      };
      if (event.key === "m" && this.chosen.size) keys.m = this.merge;
      const found = keys[event.key] ?? (each && store.at === null && intentActs[event.key]);
      if (found) found(each);
      return Boolean(found);
    },
    async merge() {
      const intents = [...this.chosen];
      if (intents.length === 1) return intentActs.m(store.state.intents.find((each) => each.id === intents[0]));
      const all = store.state.intents.filter((each) => intents.includes(each.id));
      const into = [...all].sort((a, b) => b.known - a.known || b.size - a.size)[0].id;
      if (await act({ kind: "merge", intents, into })) this.chosen = new Set();
    },
  },
};
