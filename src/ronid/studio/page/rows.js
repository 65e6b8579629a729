// A list of utterances to choose from and act on, by keys or by hand.
import { act, count, newId, number, pick, post, ask, store, go } from "ronid-studio/client.js";
import { pageKeys } from "ronid-studio/keys.js";

export default {
  mixins: [pageKeys],
  props: {
    rows: Array, // [{row, text, intent, confirmed, given, fit, margin, nearer}]
    total: Number,
    all: { type: Array, default: null }, // all row numbers, where they are known
    label: String,
    showIntent: Boolean,
    near: { type: Array, default: () => [] }, // ids to offer first
    busy: Boolean,
  },
  emits: ["more", "hover"],
  data: () => ({ store, at: 0, chosen: new Set(), last: null, everything: false }),
  template: `
  <section class="rows" :aria-label="label">
    <div class="acts" :class="{ on: marked }" role="toolbar" aria-label="What to do with the chosen utterances">
      <label class="check"><input type="checkbox" :checked="rows.length > 0 && marked >= rows.length" @change="chooseAll($event.target.checked)" aria-label="Choose all"></label>
      <span class="quiet grow" aria-live="polite">{{ marked ? count(marked) + " chosen" : (total > rows.length ? number(rows.length) + " of " : "") + count(total) }}
        <button v-if="all && marked >= rows.length && marked < total" class="link" @click="everything = true">choose all {{ number(total) }}</button></span>
      <slot name="tools" v-if="!marked" />
      <template v-else>
        <button class="small" @click="move" aria-keyshortcuts="v">Move<kbd>v</kbd></button>
        <button class="small" @click="confirm" aria-keyshortcuts="c">Confirm<kbd>c</kbd></button>
        <button class="small" @click="gather" aria-keyshortcuts="n">New intent<kbd>n</kbd></button>
        <button class="small" @click="out" aria-keyshortcuts="o">Out of scope<kbd>o</kbd></button>
        <button class="small plain" @click="clear" aria-keyshortcuts="Escape">Clear</button>
      </template>
    </div>
    <ul class="list" ref="list" tabindex="0" role="listbox" aria-multiselectable="true" :aria-label="label" :aria-activedescendant="rows.length ? 'row' + rows[at]?.row : null" @mouseleave="$emit('hover', null)">
      <li v-for="(each, place) in rows" :key="each.row" :id="'row' + each.row" role="option" :aria-selected="isChosen(each.row)" :class="{ at: place === at, chosen: isChosen(each.row) }" @click="click($event, place)" @mouseenter="$emit('hover', each.row)">
        <span class="box" aria-hidden="true"></span>
        <span class="text" dir="auto">{{ each.text }}</span>
        <span v-if="showIntent" class="in"><span v-if="each.intent" class="to" @click.stop="open(each.intent)">{{ each.intent.name }}</span><template v-else>out of scope</template></span>
        <span v-if="each.nearer" class="nearer" :title="'It lies nearer to ' + each.nearer.name">{{ showIntent ? "→" : "nearer to" }} <span class="to" @click.stop="open(each.nearer)">{{ each.nearer.name }}</span></span>
        <span class="mark" :title="mark(each)[1]"><span class="unseen">{{ mark(each)[1] }}</span><span aria-hidden="true">{{ mark(each)[0] }}</span></span>
        <span v-if="each.fit !== undefined" class="gauge" :title="'Fit ' + each.fit.toFixed(2) + ', margin to the nearest other intent ' + each.margin.toFixed(2)"><i :class="{ low: each.margin < 0.05 }" :style="{ width: Math.max(4, Math.min(100, 100 * each.fit)) + '%' }"></i></span>
      </li>
    </ul>
    <p v-if="!rows.length" class="none">{{ busy ? "Looking …" : "No utterances here." }}</p>
    <button v-if="rows.length < total && !all" class="plain more" @click="$emit('more')">Show more of {{ number(total) }}</button>
  </section>`,
  computed: {
    marked() {
      return this.everything ? this.total : this.chosen.size;
    },
  },
  watch: {
    rows() {
      this.at = Math.min(this.at, Math.max(0, this.rows.length - 1));
    },
  },
  methods: {
    act, count, go, number,
    open(each) {
      if (each) go("/intent/" + each.id);
    },
    isChosen(row) {
      return this.everything || this.chosen.has(row);
    },
    mark(each) {
      if (each.given) return ["●", "labelled by the user"];
      return each.confirmed ? ["✓", "confirmed"] : ["", "not confirmed"];
    },
    choose(place, on) {
      const row = this.rows[place]?.row;
      if (row === undefined) return;
      if (on ?? !this.chosen.has(row)) this.chosen.add(row);
      else this.chosen.delete(row);
      this.everything = false;
      this.last = place;
    },
    chooseAll(on) {
      this.clear();
      if (on) this.rows.forEach((each) => this.chosen.add(each.row));
    },
    clear() {
      this.chosen = new Set();
      this.everything = false;
    },
    click(event, place) {
      if (event.shiftKey && this.last !== null) this.range(place);
      else this.choose(place);
      this.at = place;
      this.$refs.list.focus({ preventScroll: true });
    },
    range(place) {
      const [from, to] = [this.last ?? place, place].sort((a, b) => a - b);
      for (let i = from; i <= to; i++) this.choose(i, true);
    },
    step(by) {
      this.at = Math.max(0, Math.min(this.rows.length - 1, this.at + by));
      this.$emit("hover", this.rows[this.at]?.row ?? null);
      this.$nextTick(() => this.$refs.list.children[this.at]?.scrollIntoView({ block: "nearest" }));
    },
    key(event) {
      const keys = {
        j: () => this.step(1), ArrowDown: () => this.step(1), k: () => this.step(-1), ArrowUp: () => this.step(-1),
        Home: () => this.step(-1e9), End: () => this.step(1e9),
        x: () => this.choose(this.at), X: () => this.range(this.at), " ": () => this.choose(this.at),
        v: this.move, c: this.confirm, o: this.out, n: this.gather,
        Escape: this.clear,
      };
      if (this.showIntent) keys.Enter = () => this.open(this.rows[this.at]?.intent);
      const acts = "vcon".includes(event.key);
      if (!keys[event.key] || (acts && (!this.rows.length || store.at !== null))) return false;
      keys[event.key]();
      return true;
    },
    // What is chosen, or else what the cursor is on.
    picked() {
      if (this.everything) return this.all;
      if (this.chosen.size) return [...this.chosen];
      return this.rows[this.at] ? [this.rows[this.at].row] : [];
    },
    async done(action) {
      if (await act(action)) this.clear();
      this.$nextTick(() => this.$refs.list?.focus({ preventScroll: true }));
    },
    async move() {
      const rows = this.picked();
      const nearer = this.rows.find((each) => each.row === rows[0])?.nearer?.id;
      const chosen = pick("Move " + count(rows.length) + " to");
      store.picking.near = nearer ? [nearer, ...this.near] : this.near;
      const intent = await chosen;
      if (intent) await this.done({ kind: "move", rows, intent });
      else this.$refs.list.focus();
    },
    confirm() {
      return this.done({ kind: "confirm", rows: this.picked() });
    },
    out() {
      return this.done({ kind: "out_of_scope", rows: this.picked() });
    },
    async gather() {
      const rows = this.picked();
      const proposed = await post("/name", { rows }).then((found) => found.name, () => "");
      const name = await ask("A new intent of " + count(rows.length), "Name", proposed, { say: "Make it" });
      if (name) await this.done({ kind: "gather", rows, id: newId(), name });
    },
  },
};
