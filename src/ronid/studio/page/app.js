// The frame around every page: navigation, search, undo, keys, messages.
import { act, count, dismiss, go, intent, load, number, readRoute, redo, sentence, store, toast, undo } from "ronid-studio/client.js";
import { Asking, Conflict, Help, Picking } from "ronid-studio/dialogs.js";
import History from "ronid-studio/history.js";
import Intent from "ronid-studio/intent.js";
import MapPage from "ronid-studio/map.js";
import Learn from "ronid-studio/learn.js";
import Overview from "ronid-studio/overview.js";
import Export from "ronid-studio/export.js";
import Found from "ronid-studio/found.js";
import Splitting from "ronid-studio/split.js";

const PAGES = [
  ["overview", "/", "Overview", "1"],
  ["map", "/map", "Map", "2"],
  ["doubts", "/doubts", "Doubtful", "3"],
  ["history", "/history", "History", "4"],
  ["learn", "/learn", "Learn", "5"],
  ["export", "/export", "Export", "6"],
];

export default {
  components: { Asking, Conflict, ExportPage: Export, Found, Help, History, Intent, LearnPage: Learn, MapPage, Overview, Picking, Splitting },
  props: { version: Number, suggested: Number, run: Number, learning: Object },
  data: () => ({ store, typed: "", dark: false, pages: PAGES }),
  template: `
  <div class="studio" :class="{ dark }" @keydown.esc="leave">
    <a class="skip" href="#content">Skip to content</a>
    <header class="bar">
      <button class="brand" @click="go('/')" aria-label="ronid studio, overview"><span class="mark" aria-hidden="true"></span>ronid<em>studio</em></button>
      <nav aria-label="Pages">
        <a v-for="[page, path, name, key] in pages" :key="page" :href="path" @click.prevent="go(path)"
          :aria-current="current === page ? 'page' : null" :aria-keyshortcuts="key">{{ name }}<span v-if="page === 'doubts' && doubts" class="count">{{ number(doubts) }}</span><span v-if="page === 'learn' && training" class="count busy" :title="training.who + ' is training: ' + training.says">{{ training.total ? "training " + Math.round(100 * training.done / training.total) + "%" : "training" }}</span></a>
      </nav>
      <form class="search" role="search" @submit.prevent="search">
        <label class="unseen" for="search">Search all utterances</label>
        <input id="search" ref="search" v-model="typed" type="search" maxlength="300" placeholder="Search all utterances" autocomplete="off" spellcheck="false" aria-keyshortcuts="/">
        <kbd aria-hidden="true">/</kbd>
      </form>
      <div class="tools">
        <button class="icon" :disabled="!me?.undo || looking" @click="undo" :title="me?.undo ? 'Undo: ' + me.undo.says + '  (z)' : 'Nothing to undo'" aria-label="Undo" aria-keyshortcuts="z"><svg viewBox="0 0 20 20" aria-hidden="true"><path d="M7 4 3 8l4 4M3 8h8.5a4.5 4.5 0 0 1 0 9H8"/></svg></button>
        <button class="icon" :disabled="!me?.redo || looking" @click="redo" :title="me?.redo ? 'Redo: ' + me.redo.says + '  (Z)' : 'Nothing to redo'" aria-label="Redo" aria-keyshortcuts="Shift+z"><svg viewBox="0 0 20 20" aria-hidden="true"><path d="m13 4 4 4-4 4M17 8H8.5a4.5 4.5 0 0 0 0 9H12"/></svg></button>
        <button class="icon" @click="turn" :aria-label="dark ? 'Use light colours' : 'Use dark colours'" :title="dark ? 'Light' : 'Dark'"><svg viewBox="0 0 20 20" aria-hidden="true"><path v-if="dark" d="M10 3v2m0 10v2M3 10h2m10 0h2M5 5l1.4 1.4m7.2 7.2L15 15M15 5l-1.4 1.4M6.400 13.600 5 15"/><circle v-if="dark" cx="10" cy="10" r="3"/><path v-else d="M16 11.500A6.500 6.500 0 1 1 8.500 4a5.200 5.200 0 0 0 7.500 7.500Z"/></svg></button>
        <button class="icon" @click="store.help = true" aria-label="Keys and help" title="Keys (?)" aria-keyshortcuts="?">?</button>
        <a class="me" href="/enter" :title="'You are ' + (me?.name || '…') + '; change'">{{ me?.name || "…" }}</a>
      </div>
    </header>
    <div v-if="looking" class="banner" role="status">
      <span>You are looking at <b>version {{ store.at }}</b> of {{ store.now }}. Nothing can be changed here.</span>
      <button class="small" @click="returnHere">Return to this version</button>
      <button class="small plain" @click="go(location(), { version: null })">Back to now</button>
    </div>
    <div v-if="store.failed" class="banner bad" role="alert"><span>{{ store.failed }}</span></div>
    <main id="content" tabindex="-1" :aria-busy="!store.state">
      <template v-if="store.state">
        <found v-if="store.route.query && current !== 'map'" :key="'q' + store.route.query" :query="store.route.query" />
        <overview v-else-if="current === 'overview'" />
        <intent v-else-if="current === 'intent'" :key="store.route.id" :id="store.route.id" />
        <map-page v-else-if="current === 'map'" :dark="dark" />
        <history v-else-if="current === 'history'" />
        <learn-page v-else-if="current === 'learn'" />
        <export-page v-else-if="current === 'export'" />
        <found v-else :key="current" :kind="current" />
      </template>
      <div v-else class="waiting" role="status">Opening the review …</div>
    </main>
    <div class="toasts" role="status" aria-live="polite">
      <div v-for="item in store.toasts" :key="item.id" class="toast" :class="item.kind">
        <span>{{ item.text }}</span>
        <button class="icon" @click="dismiss(item.id)" aria-label="Dismiss">×</button>
      </div>
    </div>
    <picking v-if="store.picking" />
    <asking v-if="store.asking" />
    <conflict v-if="store.conflict" />
    <splitting v-if="store.splitting" :key="store.splitting" :id="store.splitting" />
    <help v-if="store.help" />
  </div>`,
  computed: {
    me: () => store.state?.me,
    current: () => store.route.page,
    looking: () => store.at !== null,
    training: () => (store.learning?.phase === "running" ? store.learning : null),
    doubts: () => store.state?.intents.reduce((sum, each) => sum + each.doubts, 0) ?? 0,
  },
  watch: {
    version: "told",
    suggested: "told",
    run: "told",
    learning: "heard",
    "store.route.query"(query) {
      this.typed = query;
    },
  },
  created() {
    const kept = localStorage.getItem("ronid-dark");
    this.dark = kept === null ? matchMedia("(prefers-color-scheme: dark)").matches : kept === "1";
    [store.run, store.learning] = [this.run ?? 0, this.learning ?? null];
    readRoute();
    this.typed = store.route.query;
    load();
  },
  mounted() {
    window.addEventListener("popstate", readRoute);
    window.addEventListener("keydown", this.key);
    // The socket tells of changes; this is for when it is down.
    this.beat = setInterval(() => store.failed && load(), 2000);
    document.documentElement.classList.toggle("dark", this.dark);
  },
  unmounted() {
    window.removeEventListener("popstate", readRoute);
    window.removeEventListener("keydown", this.key);
    clearInterval(this.beat);
  },
  methods: {
    act, count, dismiss, go, intent, number, redo, undo,
    location: () => window.location.pathname,
    told() {
      store.now = Math.max(store.now, this.version);
      const moved = store.run !== this.run;
      store.run = this.run;
      if (moved || this.version !== store.state?.now || this.suggested !== store.state?.suggested) load();
    },
    // Whoever looks elsewhere learns how the training ended.
    heard(now, before) {
      store.learning = now ?? null;
      if (before?.phase !== "running" || now?.phase === "running" || now?.key !== before.key) return;
      if (now.phase === "done") toast(now.who + " has trained version " + now.version + " of the run; see Learn.", "done");
      else toast("The training of " + now.who + " " + (now.phase === "failed" ? "failed: " : "was ") + sentence(now.says), now.phase === "failed" ? "problem" : "info");
    },
    search() {
      const query = this.typed.trim();
      go(query ? (store.route.page === "map" ? "/map" : "/") : location.pathname, { q: query });
    },
    async returnHere() {
      const version = store.at;
      go("/", { version: null });
      await load();
      act({ kind: "return", version });
    },
    turn() {
      this.dark = !this.dark;
      localStorage.setItem("ronid-dark", this.dark ? "1" : "0");
      document.documentElement.classList.toggle("dark", this.dark);
    },
    leave(event) {
      if (event.target === this.$refs.search) {
        event.target.blur();
        if (store.route.query) go(location.pathname);
      }
    },
    key(event) {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "checkbox";
      if (document.querySelector("dialog[open]")) return;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
        event.preventDefault();
        return event.shiftKey ? redo() : undo();
      }
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const page = PAGES.find((each) => each[3] === event.key);
      if (page) return go(page[1]);
      const keys = { "/": () => this.$refs.search.focus(), "?": () => (store.help = true), z: undo, Z: redo };
      if (keys[event.key]) {
        event.preventDefault();
        keys[event.key]();
      }
    },
  },
};
