// Who did what when; any earlier version can be looked at and returned to.
import { act, get, go, number, store } from "ronid-studio/client.js";

export default {
  data: () => ({ store, page: null, who: "" }),
  template: `
  <div class="page narrow">
    <div class="head">
      <div><h1>History</h1><p class="quiet">{{ page ? number(page.version) + " events. Nothing is ever removed: what was taken back can be done again." : "" }}</p></div>
      <div class="row" v-if="page && page.people.length > 1"><label for="who">Person</label><select id="who" v-model="who"><option value="">Everybody</option><option v-for="each in page.people" :key="each">{{ each }}</option></select></div>
    </div>
    <ol v-if="page" class="events" reversed>
      <template v-for="(each, place) in shown" :key="each.seq">
        <li v-if="!place || day(each) !== day(shown[place - 1])" class="day">{{ day(each) }}</li>
        <li :class="{ off: !each.counts, steers: each.steers, now: each.seq === page.version }">
          <span class="seq num">#{{ each.seq }}</span>
          <span class="dot" :class="each.kind" aria-hidden="true"></span>
          <div class="grow"><p><b>{{ each.who }}</b> <span :class="{ struck: !each.counts }">{{ each.says }}</span><span v-if="!each.counts" class="tag">taken back</span><span v-if="each.problem" class="tag stale" :title="each.problem">left out</span></p>
            <p class="quiet"><time :datetime="each.at">{{ time(each) }}</time><template v-for="one in each.about" :key="one.id"> · <a :href="'/intent/' + one.id" @click.prevent="go('/intent/' + one.id)">{{ one.name }}</a></template></p></div>
          <div class="hover" v-if="store.at === null">
            <button v-if="each.kind === 'learn'" class="small plain" @click="go('/learn')" :aria-label="'What the training of event ' + each.seq + ' changed'">What changed</button>
            <button v-else-if="!each.steers || each.kind === 'return'" class="small plain" @click="act({ kind: each.counts ? 'undo' : 'redo', target: each.seq })" :aria-label="(each.counts ? 'Take back' : 'Do again') + ' event ' + each.seq">{{ each.counts ? "Take back" : "Do again" }}</button>
            <button class="small plain" @click="go('/', { version: each.seq })" :aria-label="'Look at version ' + each.seq">Look</button>
            <button v-if="each.seq !== page.version" class="small plain" @click="act({ kind: 'return', version: each.seq })" :aria-label="'Return to version ' + each.seq">Return here</button>
          </div>
        </li>
      </template>
      <li v-if="!page.more && !who"><span class="seq num">#0</span><span class="dot" aria-hidden="true"></span><div class="grow"><p>The run was discovered</p><p class="quiet">before any decision</p></div>
        <div class="hover" v-if="page.version && store.at === null"><button class="small plain" @click="go('/', { version: 0 })" aria-label="Look at version 0">Look</button><button class="small plain" @click="act({ kind: 'return', version: 0 })" aria-label="Return to version 0">Return here</button></div></li>
    </ol>
    <button v-if="page?.more" class="plain more" @click="more">Show earlier ones</button>
  </div>`,
  computed: {
    shown() {
      return this.page.entries.filter((each) => !this.who || each.who === this.who);
    },
  },
  watch: { "store.tick": "load" },
  created() {
    this.load();
  },
  methods: {
    act, go, number,
    day: (each) => new Date(each.at).toLocaleDateString("en", { weekday: "long", day: "numeric", month: "long", year: "numeric" }),
    time: (each) => new Date(each.at).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }),
    async load() {
      this.page = await get("/history");
    },
    async more() {
      const last = this.page.entries[this.page.entries.length - 1].seq;
      const next = await get("/history", { before: last });
      this.page = { ...next, version: this.page.version, entries: [...this.page.entries, ...next.entries] };
    },
  },
};
