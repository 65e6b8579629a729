// The words around the figures: title, counts, scores, data and settings.
document.title = report.title;
byId("title").textContent = report.title;
byId("date").textContent = report.date;
byId("date").setAttribute("datetime", report.date);

function strong(text) {
  return element("strong", { text });
}

byId("lead").append(
  strong(count(report.counts.utterances, "utterance")),
  " fall into ",
  strong(count(report.counts.known + report.counts.new, "intent")),
  ": ",
  strong(wholeNumber.format(report.counts.known)),
  " you already knew, and ",
  strong(wholeNumber.format(report.counts.new)),
  " discovered in the text.",
);
const { collected } = report.counts;
if (collected) byId("lead").append(" ", strong(count(collected, "more utterance")), ` ${collected === 1 ? "fits" : "fit"} none of them so far and ${collected === 1 ? "is" : "are"} collected.`);

const figures = [
  ["Utterances", wholeNumber.format(report.counts.utterances)],
  ["Labelled", wholeNumber.format(report.counts.labelled)],
  ["Known intents", wholeNumber.format(report.counts.known)],
  ["New intents", wholeNumber.format(report.counts.new)],
  ...(collected === null ? [] : [["Collected", wholeNumber.format(collected)]]),
  ...report.scores,
];
figures.forEach(([term, value], i) => {
  const figure = element("div", {}, [element("dt", { text: term }), element("dd", { text: value })]);
  if (i === figures.length - report.scores.length) figure.className = "first-score";
  byId("figures").append(figure);
});

if (points.text.length < report.counts.utterances) {
  byId("cap-note").textContent = `The map and the search hold ${wholeNumber.format(points.text.length)} of ${count(report.counts.utterances, "utterance")}, spread evenly over the intents.`;
}

byId("updates-section").hidden = !report.updates.length;
byId("updates").append(
  ...report.updates.flatMap(([heading, lines]) => [
    element("h3", { text: heading, dir: "auto" }),
    element("ul", {}, lines.map((text) => element("li", { text, dir: "auto" }))),
  ]),
);

byId("data-block").hidden = !report.data.length;
byId("data-lines").append(...report.data.map((text) => element("li", { text, dir: "auto" })));
byId("settings-block").hidden = !report.settings.length;
byId("settings").append(
  ...report.settings.map(([term, value]) => element("div", {}, [element("dt", { text: term }), element("dd", { text: value, dir: "auto" })])),
);
byId("run-section").hidden = !report.data.length && !report.settings.length;

if (!report.prior) {
  byId("prior-heading").textContent = "Sizes found";
  document.querySelectorAll(".of-prior").forEach((node) => node.remove());
}

change({});
