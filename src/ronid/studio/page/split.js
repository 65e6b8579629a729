// A split, shown before it happens: the parts that were found, with names that can be changed.
import { act, count, get, intent, newId, number, store, toast } from "ronid-studio/client.js";
import { modal } from "ronid-studio/keys.js";

export default {
  mixins: [modal],
  props: { id: String },
  data: () => ({ found: null, parts: 0, problem: "", busy: true }),
  template: `
  <dialog ref="dialog" class="sheet huge" aria-labelledby="splitting" @close="end" @cancel="end">
    <h2 id="splitting">Split “{{ name }}”</h2>
    <div class="row">
      <span class="quiet grow">{{ problem || (found ? "The first part keeps the name. Nothing happens before you say so." : "Looking for parts …") }}</span>
      <div class="toggle" role="group" aria-label="Parts">
        <button :aria-pressed="parts === 0" @click="look(0)">Clearest</button>
        <button v-for="n in [2, 3, 4, 5, 6, 7, 8]" :key="n" :aria-pressed="parts === n" @click="look(n)" :aria-label="n + ' parts'">{{ n }}</button>
      </div>
    </div>
    <div v-if="found" class="parts" :class="{ busy }">
      <section v-for="(part, place) in found.parts" :key="place" :aria-label="'Part ' + (place + 1)">
        <div class="partname"><span v-if="!place" dir="auto"><b>{{ part.name }}</b> <span class="quiet">stays</span></span>
          <template v-else><label class="unseen" :for="'part' + place">Name of part {{ place + 1 }}</label><input :id="'part' + place" v-model="part.name" :disabled="busy" maxlength="200" spellcheck="false"></template>
          <span class="num quiet">{{ count(part.rows.length) }}</span></div>
        <ul><li v-for="(text, line) in part.shows" :key="line" dir="auto">{{ text }}</li></ul>
      </section>
    </div>
    <div class="row end">
      <span class="quiet grow" v-if="found">The parts lie {{ clear }} apart (silhouette {{ found.clear.toFixed(2) }}).</span>
      <button class="plain" @click="end">Cancel</button>
      <button class="strong" :disabled="!found || busy || found.parts.slice(1).some((part) => !part.name.trim())" @click="split">Split into {{ found?.parts.length ?? "parts" }}</button>
    </div>
  </dialog>`,
  computed: {
    name() {
      return intent(this.id)?.name ?? "";
    },
    clear() {
      return this.found.clear > 0.25 ? "clearly" : this.found.clear > 0.1 ? "somewhat" : "hardly";
    },
  },
  mounted() {
    this.look(0);
  },
  methods: {
    count, number,
    async look(parts) {
      [this.parts, this.busy, this.problem] = [parts, true, ""];
      try {
        const found = await get("/intent/" + this.id + "/split", { parts: parts || null });
        if (this.parts === parts) this.found = found;
      } catch (error) {
        this.problem = error.message;
      }
      this.busy = false;
    },
    end() {
      if (store.splitting === this.id) store.splitting = null;
    },
    async split() {
      this.busy = true;
      const parts = this.found.parts.slice(1).map((part) => ({ id: newId(), name: part.name.trim(), rows: part.rows }));
      const done = await act({ kind: "split", intent: this.id, parts }, this.found.version);
      this.busy = false;
      if (done || store.conflict) this.end();
    },
  },
};
