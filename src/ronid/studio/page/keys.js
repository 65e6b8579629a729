// Keys work wherever the focus is, but in dialogs and where text is typed.
import { store } from "ronid-studio/client.js";

export const pageKeys = {
  mounted() {
    window.addEventListener("keydown", this.heard);
  },
  unmounted() {
    window.removeEventListener("keydown", this.heard);
  },
  methods: {
    heard(event) {
      const { tagName, type } = event.target;
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector("dialog[open]")) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(tagName ?? "") && type !== "checkbox") return;
      if (/^(BUTTON|A|INPUT)$/.test(tagName ?? "") && (event.key === "Enter" || event.key === " ")) return;
      if (store.pending) this.later(event);
      else if (this.key(event)) event.preventDefault();
    },
    // What is typed ahead is meant for what will be there then.
    later(event) {
      event.preventDefault();
      store.pending.finally(() => (store.pending ? this.later(event) : this.$el?.isConnected && this.key(event)));
    },
  },
};

// A dialog: opened when it is shown; afterwards the focus is where it was.
export const modal = {
  beforeMount() {
    this.before = document.activeElement;
  },
  mounted() {
    this.$refs.dialog.showModal();
  },
  unmounted() {
    if (this.before?.isConnected) this.before.focus({ preventScroll: true });
  },
};
