// What would be taught, one button that trains on in the background, and what that changed.
import { count, get, go, intent, number, post, sentence, store, toast } from "ronid-studio/client.js";

const KINDS = {
  accept: "accepted", reject: "rejected", reopen: "reopened", lock: "locked", unlock: "unlocked", rename: "renamed",
  describe: "described", confirm: "confirmed", move: "moved", out_of_scope: "out of scope", gather: "gathered", split: "split",
  merge: "merged", keep_apart: "kept apart", keep_whole: "kept whole",
};

export default {
  data: () => ({ store, page: null, problem: "", busy: false, asking: false, now: Date.now(), kinds: KINDS, every: false }),
  template: `
  <div class="page narrow learn">
    <div class="head"><div><h1>Learn</h1><p class="quiet">Decisions become labels and constraints, and the model trains on with them. Everybody can go on reviewing meanwhile.</p></div></div>
    <p v-if="problem" class="line bad" role="alert">{{ problem }}</p>
    <template v-if="page">
      <section class="sheetbox" aria-labelledby="taught">
        <h2 id="taught">What would be taught</h2>
        <p v-if="taught.problem" class="line bad">{{ sentence(taught.problem) }}</p>
        <div v-else class="stats">
          <div class="stat"><b>{{ number(taught.fresh) }}</b><span>{{ last ? "new " : "" }}{{ plural(taught.fresh, "decision") }}</span></div>
          <div class="stat good"><b>{{ number(taught.labels) }}</b><span>labels, {{ number(taught.given) }} of the file</span></div>
          <div class="stat"><b>{{ number(taught.stay) }}</b><span>{{ plural(taught.stay, "utterance") }} that stay</span></div>
          <div class="stat"><b>{{ number(taught.banned) }}</b><span>that must not return</span></div>
          <div class="stat"><b>{{ number(taught.locked) }}</b><span>locked {{ plural(taught.locked, "intent") }}</span></div>
          <div class="stat"><b>{{ number(taught.out) }}</b><span>out of scope</span></div>
        </div>
        <p v-if="!taught.problem" class="quiet">{{ number(taught.intents) }} intents<template v-if="taught.new">, {{ number(taught.new) }} of them made by people since the model was trained</template><template v-if="taught.gone">; {{ number(taught.gone) }} of the model’s will be gone</template><template v-if="taught.sizes">; the size of {{ number(taught.sizes) }} is believed, as people vouch for it</template>.</p>
        <p v-if="taught.fresh || taught.taken_back" class="phrases"><span v-for="(n, kind) in taught.kinds" :key="kind">{{ number(n) }} {{ kinds[kind] ?? kind }}</span><span v-if="taught.taken_back">{{ number(taught.taken_back) }} taken back</span></p>
      </section>
      <section class="sheetbox" aria-labelledby="training" :aria-busy="running">
        <h2 id="training">{{ running ? "Training" : "Train" }}</h2>
        <template v-if="running">
          <p><b>{{ standing.who }}</b> began it {{ time(standing.began) }}: {{ standing.says }}<template v-if="standing.total">, {{ number(standing.done) }} of {{ number(standing.total) }}</template> <span class="quiet num">{{ elapsed }}</span></p>
          <div class="meter" role="progressbar" aria-label="Progress of this step" aria-valuemin="0" aria-valuemax="100" :aria-valuenow="Math.round(100 * share)" :aria-valuetext="standing.says"><i :class="{ waiting: !standing.total }" :style="{ width: 100 * share + '%' }"></i></div>
          <div class="row"><button @click="cancel" :disabled="busy">Cancel the training</button><span class="quiet">Nothing changes before it is done. It goes on if you close this page.</span></div>
        </template>
        <template v-else>
          <p v-if="ended" class="line" :class="{ bad: standing.phase === 'failed' }" role="status">{{ ended }}</p>
          <div class="row"><button class="strong" @click="start" :disabled="busy || !!page.why_not || !!taught.problem || store.at !== null" :aria-describedby="page.why_not ? 'whynot' : null">Train on</button>
            <span class="quiet" id="whynot">{{ page.why_not ? sentence(page.why_not) : "It trains in the background; nothing changes before it is done." }}</span></div>
        </template>
      </section>
      <section v-if="last" class="sheetbox" aria-labelledby="after">
        <div class="row"><h2 id="after" class="grow">Before and after: version {{ last.version }} of the run</h2>
          <template v-if="last.current && !running && store.at === null">
            <template v-if="asking"><span class="quiet">Its version will be gone; every decision stays.</span><button class="small" @click="undo" :disabled="busy" ref="sure">Take it back</button><button class="small plain" @click="asking = false">Keep it</button></template>
            <button v-else class="small" @click="ask">Take this training back</button>
          </template></div>
        <p class="quiet">{{ last.who }}, <time :datetime="last.when">{{ day(last.when) }}</time>, from {{ last.source }}, in {{ number(Math.round(last.seconds)) }} s.</p>
        <div class="stats">
          <div class="stat"><b>{{ number(last.moved) }}</b><span>of {{ count(last.utterances) }} went elsewhere</span></div>
          <div class="stat good"><b>{{ number(last.held) }}</b><span>{{ plural(last.held, "decision") }} held</span></div>
          <div class="stat" :class="{ bad: last.not_held }"><b>{{ number(last.not_held) }}</b><span>did not</span></div>
          <div v-if="last.overtaken" class="stat"><b>{{ number(last.overtaken) }}</b><span>overtaken by later ones</span></div>
          <div class="stat"><b>{{ number(last.new.length) }}</b><span>new {{ plural(last.new.length, "intent") }}</span></div>
          <div class="stat"><b>{{ number(last.gone.length) }}</b><span>{{ plural(last.gone.length, "intent") }} gone</span></div>
        </div>
        <p v-if="last.new.length">New in the model: <template v-for="(each, place) in last.new" :key="each.index"><template v-if="place">, </template><b dir="auto">{{ each.name }}</b> ({{ number(each.size) }})</template>.</p>
        <p v-if="last.gone.length">Gone from it: <template v-for="(name, place) in last.gone" :key="place"><template v-if="place">, </template><b dir="auto">{{ name }}</b></template>.</p>
        <h3>Intents that changed</h3>
        <div v-if="last.changes.length" class="tablebox" tabindex="0" aria-label="Intents that changed"><table class="plain"><thead><tr><th scope="col">Intent</th><th scope="col" class="num">Before</th><th scope="col" class="num">After</th><th scope="col" class="num">Came</th><th scope="col" class="num">Went</th></tr></thead>
          <tbody><tr v-for="each in changes" :key="each.id"><td><a v-if="intent(each.id)" :href="'/intent/' + each.id" @click.prevent="go('/intent/' + each.id)" dir="auto">{{ intent(each.id).name }}</a><span v-else dir="auto">{{ each.name }}</span></td>
            <td class="num">{{ number(each.before) }}</td><td class="num">{{ number(each.after) }} <span v-if="each.after !== each.before" class="delta">{{ each.after > each.before ? "+" : "−" }}{{ number(Math.abs(each.after - each.before)) }}</span></td>
            <td class="num">{{ number(each.came) }}</td><td class="num">{{ number(each.went) }}</td></tr></tbody></table></div>
        <p v-else class="quiet">None: every utterance stayed where it was.</p>
        <p v-if="last.changes_in_all > changes.length"><button class="link" @click="every = true" v-if="!every">Show more of {{ number(last.changes_in_all) }}</button></p>
        <template v-if="last.examples.length"><h3>Utterances that went elsewhere, the surest first</h3>
          <ul class="went"><li v-for="each in last.examples.slice(0, every ? 50 : 6)" :key="each.row"><span dir="auto">{{ each.text }}</span><span class="quiet"><span dir="auto">{{ each.source }}</span> → <b dir="auto">{{ each.into }}</b></span></li></ul></template>
        <h3>Decisions</h3>
        <ul class="verdicts"><li v-for="each in verdicts" :key="each.seq"><span class="tag" :class="{ held: 'good', 'not held': 'bad' }[each.status]">{{ each.status }}</span><span class="grow"><b>{{ each.who }}</b> {{ each.says }}<span v-if="each.why" class="quiet"> · {{ each.why }}</span></span><span class="quiet num">#{{ each.seq }}</span></li></ul>
        <p v-if="last.verdicts_in_all > verdicts.length"><button v-if="!every" class="link" @click="every = true">Show all {{ number(last.verdicts_in_all) }}</button></p>
        <p class="row"><button @click="go('/')">To the intents</button><button class="plain" @click="go('/export')">To the export</button></p>
      </section>
    </template>
    <p v-else-if="!problem" class="none">Looking …</p>
  </div>`,
  computed: {
    taught() {
      return this.page.taught;
    },
    last() {
      return this.page.last;
    },
    standing() {
      return store.learning ?? this.page?.standing ?? null;
    },
    running() {
      return this.standing?.phase === "running";
    },
    share() {
      return this.standing.total ? Math.min(1, this.standing.done / this.standing.total) : 0;
    },
    elapsed() {
      const seconds = Math.max(0, Math.round((this.now - new Date(this.standing.began)) / 1000));
      return this.standing.began ? (seconds < 60 ? seconds + " s" : Math.floor(seconds / 60) + " min " + (seconds % 60) + " s") : "";
    },
    // A training that ended well is told below, with all that it did.
    ended() {
      const { phase, says, version } = this.standing ?? {};
      if (phase === "failed") return "The last training failed: " + sentence(says);
      if (phase === "cancelled") return "The last training was " + sentence(says);
      return phase === "done" && version !== this.last?.version ? "The last training was taken back." : "";
    },
    changes() {
      return this.last.changes.slice(0, this.every ? 200 : 10);
    },
    verdicts() {
      return this.last.verdicts.slice(0, this.every ? 200 : 12);
    },
  },
  watch: {
    "store.tick": "later",
    "store.run": "load",
    "store.learning"(now, before) {
      if (now?.phase !== before?.phase || now?.key !== before?.key) this.load();
    },
  },
  created() {
    this.load();
    this.clock = setInterval(() => (this.now = Date.now()), 1000);
  },
  unmounted() {
    clearTimeout(this.soon);
    clearInterval(this.clock);
  },
  methods: {
    count, go, intent, number, sentence,
    plural: (n, noun) => (n === 1 ? noun : noun + "s"),
    time: (at) => (at ? "at " + new Date(at).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false }) : "just now"),
    day: (at) => new Date(at).toLocaleString("en", { day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", hour12: false }),
    // Counting what is taught takes its time in a large run: not at every action of everybody.
    later() {
      clearTimeout(this.soon);
      this.soon = setTimeout(this.load, 700);
    },
    async load() {
      try {
        this.page = await get("/learn");
        this.problem = "";
      } catch (error) {
        this.problem = sentence(error.message);
      }
    },
    async say(path, body, done) {
      this.busy = true;
      try {
        const told = await post("/learn" + path, body);
        if ("standing" in told) store.learning = told.standing;
        if (done) toast(done, "done");
        await this.load();
      } catch (error) {
        toast(sentence(error.message), "problem");
        await this.load();
      }
      this.busy = false;
    },
    start() {
      return this.say("", {});
    },
    cancel() {
      return this.say("/cancel", {});
    },
    ask() {
      this.asking = true;
      this.$nextTick(() => this.$refs.sure?.focus());
    },
    async undo() {
      await this.say("/undo", { version: this.last.version }, "Took the training back. Every decision is still there.");
      this.asking = false;
    },
  },
};
