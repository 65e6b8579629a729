// The result in the format of another system: what it will be, what changes on the way, the file.
import { count, get, go, number, sentence, store } from "ronid-studio/client.js";

const ASKS = { // what a target wants to know
  language: ["dialogflow-cx", "lex", "clu", "hf"],
  name: ["dialogflow-cx", "lex", "clu", "hf"],
  system: ["openai-jsonl"],
};

export default {
  data: () => ({
    store, targets: [], to: localStorage.getItem("ronid-export") || "rasa", preview: null, problem: "", busy: true,
    open: false, rejected: false, out: false, language: "en", name: "ronid", system: "",
  }),
  template: `
  <div class="page split export">
    <div class="head wide"><div><h1>Export</h1><p class="quiet">The review as it stands, in the format of another system, with an audit of where every label came from. Nothing is sent anywhere.</p></div></div>
    <section class="left">
      <fieldset class="sheetbox"><legend>Where to</legend>
        <div class="targets"><label v-for="each in targets" :key="each.to" class="target" :class="{ on: each.to === to }"><input type="radio" name="target" :value="each.to" v-model="to"><span><b>{{ each.title }}</b><span class="quiet">{{ each.files.slice(0, -2).join(", ") }}</span></span></label></div>
      </fieldset>
      <fieldset class="sheetbox"><legend>What</legend>
        <div class="choices-row"><label><input type="radio" name="which" :value="false" v-model="open"> Only accepted intents <span class="quiet">and those that you had labelled</span></label>
          <label><input type="radio" name="which" :value="true" v-model="open"> All intents <span class="quiet">open ones too</span></label></div>
        <div class="choices-row"><label><input type="checkbox" v-model="rejected"> Rejected intents too</label><label><input type="checkbox" v-model="out"> Utterances out of scope too</label></div>
        <div class="fields" v-if="asks('language') || asks('name') || asks('system')">
          <label v-if="asks('language')" for="language">Language<input id="language" v-model="language" maxlength="40" autocomplete="off" spellcheck="false"></label>
          <label v-if="asks('name')" for="botname">Name of the bot or project<input id="botname" v-model="name" maxlength="80" autocomplete="off" spellcheck="false"></label>
          <label v-if="asks('system')" for="system" class="long">What the model is told before every utterance<input id="system" v-model="system" maxlength="2000" autocomplete="off"></label>
        </div>
      </fieldset>
      <section v-if="preview && preview.renamed.length" class="sheetbox" aria-labelledby="renamed"><h2 id="renamed">Names that {{ title }} does not take as they are: {{ number(preview.renamed_in_all) }}</h2>
        <div class="tablebox" tabindex="0" aria-label="Changed names"><table class="plain"><thead><tr><th scope="col">Intent</th><th scope="col">Exported as</th></tr></thead><tbody><tr v-for="each in preview.renamed" :key="each.name"><td dir="auto">{{ each.name }}</td><td dir="auto"><code>{{ each.as }}</code></td></tr></tbody></table></div></section>
      <section v-if="preview && preview.changed.length" class="sheetbox" aria-labelledby="changed"><h2 id="changed">Utterances that are written otherwise: {{ number(preview.changed_in_all) }}</h2>
        <ul class="went"><li v-for="(each, place) in preview.changed.slice(0, 20)" :key="place"><span dir="auto">{{ each.text }}</span><span class="quiet">→ <b dir="auto">{{ each.as }}</b></span></li></ul></section>
    </section>
    <aside class="right" aria-label="What will be written" aria-live="polite" :aria-busy="busy">
      <section class="sheetbox">
        <h2>{{ title }}</h2>
        <p v-if="problem" class="line bad" role="alert">{{ problem }}</p>
        <template v-else-if="preview">
          <div class="stats"><div class="stat"><b>{{ number(preview.intents) }}</b><span>intents</span></div><div class="stat"><b>{{ number(preview.utterances) }}</b><span>utterances</span></div></div>
          <ul class="notes">
            <li v-for="(note, place) in preview.notes" :key="'n' + place">{{ sentence(note) }}</li>
            <li v-for="each in preview.left_out" :key="each.why">{{ count(each.count) }} left out: {{ each.why }}.</li>
            <li v-if="preview.empty.length">Without an utterance that can be written, and so left out: <span dir="auto">{{ preview.empty.join(", ") }}</span>.</li>
            <li v-if="preview.renamed_in_all">{{ number(preview.renamed_in_all) }} {{ preview.renamed_in_all === 1 ? "intent is" : "intents are" }} called otherwise there.</li>
            <li v-if="preview.changed_in_all">{{ count(preview.changed_in_all) }} written otherwise than they were said.</li>
            <li v-if="clean" class="good">Everything goes as it is.</li>
          </ul>
        </template>
        <p class="quiet files">In the archive: <template v-for="(name, place) in files" :key="name"><template v-if="place">, </template><code>{{ name }}</code></template>.</p>
        <a v-if="preview && !problem" class="button strong" :href="address" :download="'export-' + to + '.zip'">Download for {{ title }}</a>
        <button v-else class="strong" disabled>Download</button>
      </section>
      <p class="quiet small">It holds utterances: treat it as personal data. The same from the command line: <code>{{ command }}</code></p>
    </aside>
  </div>`,
  computed: {
    title() {
      return this.targets.find((each) => each.to === this.to)?.title ?? "";
    },
    files() {
      return this.targets.find((each) => each.to === this.to)?.files ?? [];
    },
    wanted() {
      const wanted = { open: this.open || null, rejected: this.rejected || null, out_of_scope: this.out || null };
      for (const key of ["language", "name", "system"]) if (this.asks(key)) wanted[key] = this[key];
      return wanted;
    },
    address() {
      const url = new URL("/api/export/" + encodeURIComponent(this.to) + "/file", location.origin);
      for (const [name, value] of Object.entries(this.wanted)) if (value !== null) url.searchParams.set(name, value);
      return url.pathname + url.search;
    },
    command() {
      const flags = [this.open && " --all", this.rejected && " --rejected", this.out && " --out-of-scope"];
      return "ronid export RUN --to " + this.to + flags.filter(Boolean).join("");
    },
    clean() {
      const { notes, left_out, empty, renamed_in_all, changed_in_all } = this.preview;
      return !notes.length && !left_out.length && !empty.length && !renamed_in_all && !changed_in_all;
    },
  },
  watch: {
    to(now) {
      localStorage.setItem("ronid-export", now);
      this.load();
    },
    wanted(now, before) {
      if (JSON.stringify(now) === JSON.stringify(before)) return;
      this.later();
    },
    "store.tick": "later",
  },
  unmounted() {
    clearTimeout(this.soon);
  },
  async created() {
    try {
      const told = await get("/export");
      [this.targets, this.system] = [told.targets, told.system];
      if (!this.files.length) this.to = "rasa";
    } catch (error) {
      this.problem = sentence(error.message);
    }
    this.load();
  },
  methods: {
    count, go, number, sentence,
    asks(key) {
      return ASKS[key].includes(this.to);
    },
    later() {
      clearTimeout(this.soon);
      this.soon = setTimeout(this.load, 400);
    },
    async load() {
      const [to, asked] = [this.to, JSON.stringify(this.wanted)];
      const stale = () => to !== this.to || asked !== JSON.stringify(this.wanted);
      this.busy = true;
      try {
        const preview = await get("/export/" + encodeURIComponent(to), this.wanted);
        if (stale()) return;
        [this.preview, this.problem] = [preview, ""];
      } catch (error) {
        if (stale()) return;
        [this.preview, this.problem] = [null, sentence(error.message)];
      }
      this.busy = false;
    },
  },
};
