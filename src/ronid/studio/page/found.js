// Utterances from everywhere: what a search found, what is doubtful, what is out of scope.
import { get, go, number, store } from "ronid-studio/client.js";
import Rows from "ronid-studio/rows.js";

export default {
  components: { Rows },
  props: { query: String, kind: String },
  data: () => ({ store, found: null, busy: true, took: 0 }),
  template: `
  <div class="page narrow">
    <div class="head">
      <div><h1>{{ title }}</h1><p class="quiet">{{ about }}</p></div>
      <div class="row"><button v-if="query" class="small" @click="go('/map', { q: query })">Show on the map</button><button v-if="query" class="small plain" @click="go('/')">Close</button></div>
    </div>
    <rows v-if="found" :rows="found.rows" :total="found.total" :all="found.all ?? null" :label="title" :busy="busy" show-intent @more="more" />
    <p v-else class="none">Looking …</p>
  </div>`,
  computed: {
    title() {
      if (this.query) return "“" + this.query + "”";
      return { doubts: "Doubtful utterances", out: "Out of scope" }[this.kind] ?? "There is no such page";
    },
    about() {
      if (this.query) return this.found ? number(this.found.total) + " utterances have these words" : "";
      return {
        doubts: "They lie nearer to another intent than to their own, the clearest first. Confirm them, or move them.",
        out: "They belong to no intent. Move them to one if they do.",
      }[this.kind] ?? "";
    },
  },
  watch: { "store.tick": "load" },
  created() {
    this.load();
  },
  methods: {
    go,
    async load() {
      try {
        if (this.query) this.found = await get("/search", { q: this.query });
        else if (this.kind === "out") {
          const rows = Math.max(200, this.found?.rows.length ?? 0);
          const found = await get("/intent/out/rows", { version: store.at });
          while (found.rows.length < Math.min(rows, found.total))
            found.rows.push(...(await get("/intent/out/rows", { start: found.rows.length, version: store.at })).rows);
          this.found = { ...found, all: null };
        } else this.found = await get("/doubts");
      } finally {
        this.busy = false;
      }
    },
    async more() {
      const next = await get("/intent/out/rows", { start: this.found.rows.length, version: store.at });
      this.found = { ...this.found, rows: [...this.found.rows, ...next.rows] };
    },
  },
};
