// One intent: its utterances from the centre to the border, its neighbours, and what to do with it.
import { act, get, go, intent, number, percent, store } from "ronid-studio/client.js";
import { accept, describe, intentActs, lock, merge, mergeBoth, reject, rename, split } from "ronid-studio/acts.js";
import { pageKeys } from "ronid-studio/keys.js";
import Rows from "ronid-studio/rows.js";
import Suggested from "ronid-studio/suggested.js";

export default {
  components: { Rows, Suggested },
  mixins: [pageKeys],
  props: { id: String },
  data: () => ({ store, page: null, gone: "", order: "central" }),
  template: `
  <div v-if="gone" class="page narrow"><h1>Not here</h1><p>{{ gone }}</p><p><button @click="go('/')">To the overview</button></p></div>
  <div v-else-if="page" class="page split">
    <div class="head wide">
      <div class="grow">
        <p class="crumbs"><a href="/" @click.prevent="go('/')">Intents</a> <span aria-hidden="true">/</span></p>
        <h1 dir="auto">{{ page.name }}</h1>
        <p class="tags"><span class="tag" :class="page.known ? 'known' : 'new'">{{ page.known ? "known" : "new" }}</span><span class="state" :class="page.status">{{ page.status }}</span><span v-if="page.locked" class="tag lock">locked</span><span v-if="page.stale" class="tag stale">name stale</span><span class="quiet">{{ number(page.size) }} utterances · name by {{ namer }}</span></p>
        <p class="about" dir="auto" :class="{ quiet: !page.description }">{{ page.description || "No description yet." }}</p>
      </div>
      <div class="deeds" role="toolbar" aria-label="What to do with this intent" v-if="store.at === null">
        <button class="strong" @click="accept(page)" :disabled="page.locked || !page.size" aria-keyshortcuts="a">{{ page.status === "accepted" ? "Accepted ✓" : "Accept" }}<kbd>a</kbd></button>
        <button @click="reject(page)" :disabled="page.locked" aria-keyshortcuts="r">{{ page.status === "rejected" ? "Rejected" : "Reject" }}<kbd>r</kbd></button>
        <button @click="rename(page)" :disabled="page.locked" aria-keyshortcuts="e">Rename<kbd>e</kbd></button>
        <button @click="describe(page)" :disabled="page.locked" aria-keyshortcuts="d">Describe<kbd>d</kbd></button>
        <button @click="merge(page)" :disabled="page.locked" aria-keyshortcuts="m">Merge<kbd>m</kbd></button>
        <button @click="split(page)" :disabled="page.locked" aria-keyshortcuts="s">Split<kbd>s</kbd></button>
        <button @click="lock(page)" aria-keyshortcuts="l">{{ page.locked ? "Unlock" : "Lock" }}<kbd>l</kbd></button>
      </div>
    </div>
    <section class="left">
      <rows ref="rows" :rows="page.rows" :total="page.total" :label="'Utterances of ' + page.name" :near="page.nearest.map((each) => each.id)" @more="more">
        <template #tools><div class="toggle" role="group" aria-label="Order"><button :aria-pressed="order === 'central'" @click="sort('central')">Central</button><button :aria-pressed="order === 'borderline'" @click="sort('borderline')" aria-keyshortcuts="b">Borderline</button></div></template>
      </rows>
    </section>
    <aside class="right">
      <section v-if="page.suggestions.length"><h2>Suggestions</h2><suggested v-for="each in page.suggestions" :key="each.kind + each.intents.map((one) => one.id).join()" :suggestion="each" /></section>
      <section v-if="page.nearest.length"><h2>Nearest intents</h2>
        <ul class="nearest"><li v-for="each in page.nearest" :key="each.id">
          <a :href="'/intent/' + each.id" @click.prevent="go('/intent/' + each.id)" dir="auto">{{ each.name }}</a>
          <span class="num quiet">{{ each.similarity.toFixed(2) }}</span>
          <span class="bar wide"><i :style="{ width: Math.max(0, 100 * each.similarity) + '%' }"></i></span>
          <span class="deed"><button class="small plain" @click="go('/map', { a: id, b: each.id })" :aria-label="'Compare with ' + each.name + ' on the map'">Compare</button><button v-if="store.at === null" class="small plain" :disabled="page.locked || each.locked" @click="mergeBoth(id, each.id)" :aria-label="'Merge with ' + each.name">Merge</button></span>
        </li></ul></section>
      <section v-if="page.keyphrases.length"><h2>Keyphrases</h2><p class="phrases"><span v-for="each in page.keyphrases" :key="each" dir="auto">{{ each }}</span></p></section>
      <section v-if="page.origin.length"><h2>Made of</h2><p class="phrases"><a v-for="each in page.origin" :key="each.id" :href="'/intent/' + each.id" @click.prevent="go('/intent/' + each.id)">{{ each.name }}</a></p></section>
      <section><button class="plain" @click="go('/map', { a: id })">Show on the map</button></section>
    </aside>
  </div>
  <p v-else class="none">Looking …</p>`,
  computed: {
    namer() {
      const [kind, who] = this.page.named_by.split(/:(.*)/s);
      return { user: "the labels", person: who, model: who, parts: "the split" }[kind] ?? kind;
    },
  },
  watch: { "store.tick": "load" },
  async created() {
    await this.load();
    this.$nextTick(() => this.$refs.rows?.$refs.list.focus({ preventScroll: true }));
  },
  methods: {
    accept, act, describe, go, lock, merge, mergeBoth, number, percent, reject, rename, split,
    async load() {
      if (!intent(this.id)) return this.leave();
      try {
        const wanted = this.page?.rows.length ?? 0;
        const page = await get("/intent/" + encodeURIComponent(this.id), { order: this.order, version: store.at });
        while (page.rows.length < Math.min(wanted, page.total))
          page.rows.push(...(await this.next(page.rows.length)));
        [this.page, this.gone] = [page, ""];
      } catch (error) {
        this.gone = error.message[0].toUpperCase() + error.message.slice(1) + ".";
      }
    },
    // A merged intent leads on to the one it went into.
    leave() {
      let into = this.id;
      while (store.state.gone[into]) into = store.state.gone[into];
      if (intent(into)) go("/intent/" + into);
      else this.gone = "There is no such intent, or there is none any more.";
    },
    async next(start) {
      const path = "/intent/" + encodeURIComponent(this.id) + "/rows";
      return (await get(path, { start, order: this.order, version: store.at })).rows;
    },
    async more() {
      this.page.rows.push(...(await this.next(this.page.rows.length)));
    },
    sort(order) {
      this.order = order;
      this.page.rows = [];
      this.load();
    },
    key(event) {
      if (event.key === "b") this.sort(this.order === "central" ? "borderline" : "central");
      else if (this.page && store.at === null && intentActs[event.key]) intentActs[event.key](this.page);
      else return false;
      return true;
    },
  },
};
