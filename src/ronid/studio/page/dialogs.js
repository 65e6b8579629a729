// Questions: a text, an intent, what others did meanwhile, and the keys.
import { go, number, store } from "ronid-studio/client.js";
import { modal } from "ronid-studio/keys.js";

export const Asking = {
  mixins: [modal],
  data: () => ({ asking: store.asking, value: store.asking.value }),
  template: `
  <dialog ref="dialog" class="sheet" aria-labelledby="asking" @close="end(null)" @cancel="end(null)">
    <form @submit.prevent="end(value.trim())">
      <h2 id="asking">{{ asking.title }}</h2>
      <p v-if="asking.about" class="quiet">{{ asking.about }}</p>
      <label for="answer">{{ asking.label }}</label>
      <textarea v-if="asking.long" id="answer" ref="input" v-model="value" rows="4" maxlength="2000"></textarea>
      <input v-else id="answer" ref="input" v-model="value" maxlength="200" autocomplete="off" spellcheck="false">
      <p v-if="asking.hint"><button type="button" class="small" @click="value = asking.hint">Use “{{ asking.hint }}”</button></p>
      <div class="row end">
        <button type="button" class="plain" @click="end(null)">Cancel</button>
        <button class="strong" :disabled="!asking.long && !value.trim()">{{ asking.say || "Save" }}</button>
      </div>
    </form>
  </dialog>`,
  mounted() {
    this.$refs.input.focus();
    this.$refs.input.select();
  },
  methods: {
    end(value) {
      if (store.asking !== this.asking) return;
      store.asking = null;
      this.asking.answer(value);
    },
  },
};

export const Picking = {
  mixins: [modal],
  data: () => ({ picking: store.picking, typed: "", at: 0 }),
  template: `
  <dialog ref="dialog" class="sheet" aria-labelledby="picking" @close="end(null)" @cancel="end(null)">
    <h2 id="picking">{{ picking.title }}</h2>
    <label class="unseen" for="pick">Name of the intent</label>
    <input id="pick" ref="input" v-model="typed" placeholder="Type a part of the name" autocomplete="off" spellcheck="false"
      role="combobox" aria-expanded="true" aria-controls="choices" :aria-activedescendant="found.length ? 'choice' + at : null"
      @input="at = 0" @keydown.down.prevent="step(1)" @keydown.up.prevent="step(-1)" @keydown.enter.prevent="end(found[at]?.id ?? null)">
    <ul id="choices" role="listbox" class="choices" aria-label="Intents">
      <li v-for="(each, place) in found" :key="each.id" :id="'choice' + place" role="option" :aria-selected="place === at"
        @click="end(each.id)" @mousemove="at = place">
        <span class="name">{{ each.name }}</span><span class="tag" :class="each.known ? 'known' : 'new'">{{ each.known ? "known" : "new" }}</span><span class="quiet num">{{ number(each.size) }}</span>
      </li>
      <li v-if="!found.length" class="quiet" role="option" aria-disabled="true" aria-selected="false">No intent has this in its name.</li>
    </ul>
    <div class="row end"><button class="plain" @click="end(null)">Cancel</button></div>
  </dialog>`,
  computed: {
    found() {
      const words = fold(this.typed).split(/[\s_]+/).filter(Boolean);
      return store.state.intents
        .filter((each) => !this.picking.exclude.includes(each.id) && !each.locked && each.status !== "rejected")
        .filter((each) => words.every((word) => fold(each.name).includes(word)))
        .sort((a, b) => rank(this.picking, a) - rank(this.picking, b) || b.size - a.size)
        .slice(0, 60);
    },
  },
  mounted() {
    this.$refs.input.focus();
  },
  methods: {
    number,
    step(by) {
      this.at = Math.max(0, Math.min(this.found.length - 1, this.at + by));
      this.$nextTick(() => document.getElementById("choice" + this.at)?.scrollIntoView({ block: "nearest" }));
    },
    end(id) {
      if (store.picking !== this.picking) return;
      store.picking = null;
      this.picking.answer(id);
    },
  },
};

function rank(picking, each) {
  const place = (picking.near || []).indexOf(each.id);
  return place < 0 ? 999 : place;
}

function fold(text) {
  return text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
}

export const Conflict = {
  mixins: [modal],
  data: () => ({ conflict: store.conflict }),
  template: `
  <dialog ref="dialog" class="sheet" aria-labelledby="conflict" @close="end" @cancel="end">
    <h2 id="conflict">Somebody was here meanwhile</h2>
    <p>Nothing of yours was applied, and nothing is lost. Since the version you saw:</p>
    <ul class="since"><li v-for="each in conflict.since" :key="each.seq"><b>{{ each.who }}</b> {{ each.says }} <span class="quiet">#{{ each.seq }}</span></li></ul>
    <div class="row end">
      <button class="plain" @click="look">See the history</button>
      <button @click="end">Leave it</button>
      <button class="strong" @click="again">Do it all the same</button>
    </div>
  </dialog>`,
  methods: {
    end() {
      if (store.conflict === this.conflict) store.conflict = null;
    },
    look() {
      this.end();
      go("/history");
    },
    again() {
      this.end();
      this.conflict.retry();
    },
  },
};

const KEYS = [
  ["Everywhere", [["1 2 3 4 5 6", "Overview, map, doubtful, history, learn, export"], ["/", "Search all utterances"], ["z  Z", "Undo, redo what you did"], ["?", "This list"]]],
  ["In lists", [["j k", "Down, up"], ["x", "Choose; with Shift from the last one"], ["Enter", "Open"], ["Esc", "Choose nothing"]]],
  ["An intent", [["a", "Accept"], ["r", "Reject"], ["l", "Lock or unlock"], ["e", "Rename"], ["d", "Describe"], ["m", "Merge"], ["s", "Split"], ["u", "Reopen"]]],
  ["Utterances", [["v", "Move to an intent"], ["c", "Confirm"], ["o", "Out of scope"], ["n", "New intent of them"], ["b", "Central or borderline first"]]],
];

export const Help = {
  mixins: [modal],
  data: () => ({ keys: KEYS }),
  template: `
  <dialog ref="dialog" class="sheet wide" aria-labelledby="help" @close="end" @cancel="end">
    <h2 id="help">Keys</h2>
    <div class="keys"><section v-for="[where, list] in keys" :key="where"><h3>{{ where }}</h3>
      <dl><template v-for="[key, what] in list" :key="key"><dt><kbd v-for="one in key.split(/\\s+/)" :key="one">{{ one }}</kbd></dt><dd>{{ what }}</dd></template></dl>
    </section></div>
    <div class="row end"><button class="strong" @click="end">Close</button></div>
  </dialog>`,
  methods: {
    end() {
      store.help = false;
    },
  },
};
