// The chart of a report and its clients one by one: everything they show is in the page.

const place = document.getElementById("chart");
const known = JSON.parse(document.getElementById("chart-data").textContent);
document.getElementById("explore-section").hidden = false;
new Chart(place).show(known.series, known.rounds);

/** The rounds of a run from their text: "0 2-,1*5*3" is 0 drawn and arrived, 2 drawn in vain, then 1 drawn five times and arrived three times. */
function unpacked(text) {
  if (!text) return [];
  return text.split(",").map((words, at) => {
    const now = { round: at + 1, selected: [], arrived: [] };
    for (const word of words.split(" ").filter(Boolean)) {
      const [, name, lost, drawn, came] = /^(\w+)(?:(-)|\*(\d+)\*(\d+))?$/.exec(word);
      const client = parseInt(name, 36);
      const [copies, arrived] = drawn === undefined ? [1, lost ? 0 : 1] : [Number(drawn), Number(came)];
      if (copies) now.selected.push([client, copies]);
      if (arrived) now.arrived.push([client, arrived]);
    }
    return now;
  });
}

/** A run as `clientPanel` wants it. */
function whole(data, at) {
  const one = data.runs[at];
  const { clients, global_labels } = data.tables[one.table];
  const own = (client, index) => ({ ...client, selection: one.selection?.[index], appearance: one.appearance?.[index] });
  return { clients: { global_labels, warnings: one.warnings, clients: clients.map(own) }, rounds: unpacked(one.rounds) };
}

function lookAtClients(data) {
  const [run, client, panel] = ["each-run", "each-client-name", "client-panel"].map((id) => document.getElementById(id));
  run.replaceChildren(...data.runs.map((one, at) => html("option", { value: at }, `${one.name}, seed ${one.seed}`)));
  let shown = null;
  const show = () => {
    const now = whole(data, Number(run.value));
    const names = now.clients.clients.map(({ id }) => id);
    const wanted = names.includes(client.value) ? client.value : names[0];
    client.replaceChildren(...names.map((value) => html("option", { value }, value)));
    client.value = wanted;
    panel.replaceChildren(...(clientPanel(now, wanted, now.rounds.length, data.runs[run.value].remembers) ?? []));
    panel.dataset.shown = `${data.runs[run.value].name}/${data.runs[run.value].seed}/${wanted}`;
  };
  const look = (id, at = run.value) => {
    run.value = at;
    show();
    client.value = id;
    show();
    if (client.value === id) shown = { run: data.runs[at].name, seed: data.runs[at].seed, client: id };
    // A file may have no address to write to.
    try {
      window.history.replaceState(null, "", `#${new URLSearchParams(shown)}`);
    } catch {}
  };
  run.addEventListener("change", () => look(client.value));
  client.addEventListener("change", () => look(client.value));
  // A client in a figure is a client to look at.
  document.addEventListener("click", (event) => {
    const id = event.target.closest?.("[data-client]")?.dataset.client;
    if (id === undefined) return;
    look(id);
    document.getElementById("each-client").scrollIntoView();
  });
  document.getElementById("each-client-section").hidden = false;
  const asked = new URLSearchParams(location.hash.slice(1));
  const at = data.runs.findIndex((one) => one.name === asked.get("run") && String(one.seed) === asked.get("seed"));
  if (at < 0) return show();
  look(asked.get("client"), at);
  document.getElementById("each-client").scrollIntoView();
}

const told = document.getElementById("client-data");
if (told) lookAtClients(JSON.parse(told.textContent));
