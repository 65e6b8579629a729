// One suggestion, with its reason and what shows it.
import { act, go, percent, store } from "ronid-studio/client.js";
import { mergeBoth } from "ronid-studio/acts.js";

export default {
  props: { suggestion: Object },
  data: () => ({ store, busy: false }),
  template: `
  <article class="suggestion" :class="suggestion.kind">
    <h3><span class="kind">{{ suggestion.kind }}</span><span class="quiet num">{{ percent(suggestion.chance) }}</span></h3>
    <p class="who"><template v-for="(each, place) in suggestion.intents" :key="each.id"><span v-if="place" class="plus" aria-hidden="true">+</span><a :href="'/intent/' + each.id" @click.prevent="go('/intent/' + each.id)" dir="auto">{{ each.name }}</a></template></p>
    <ul class="shows"><li v-for="(pair, place) in suggestion.shows.slice(0, 2)" :key="place"><span dir="auto">{{ pair[0] }}</span><span dir="auto">{{ pair[1] }}</span></li></ul>
    <p class="reason">{{ suggestion.reason }}</p>
    <div class="row" v-if="store.at === null">
      <template v-if="suggestion.kind === 'merge'">
        <button class="small" :disabled="busy" @click="once(() => mergeBoth(...suggestion.intents.map((each) => each.id)))">Merge</button>
        <button class="small plain" :disabled="busy" @click="once(() => act({ kind: 'keep_apart', intents: suggestion.intents.map((each) => each.id) }))">Keep apart</button>
        <button class="small plain" @click="go('/map', { a: suggestion.intents[0].id, b: suggestion.intents[1].id })">Compare</button>
      </template>
      <template v-else>
        <button class="small" @click="store.splitting = suggestion.intents[0].id">See the parts</button>
        <button class="small plain" :disabled="busy" @click="once(() => act({ kind: 'keep_whole', intent: suggestion.intents[0].id }))">Keep whole</button>
      </template>
    </div>
  </article>`,
  methods: {
    act, go, mergeBoth, percent,
    async once(work) {
      this.busy = true;
      await work();
      this.busy = false;
    },
  },
};
