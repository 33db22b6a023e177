// A judging offline: one pair at a time, kept in the browser as far as it allows, and handed back as a file.

const data = JSON.parse(document.getElementById("data").textContent)
const at = id => document.getElementById(id)
const kept = `kotha-judging-${data.pairs_fingerprint}`
const state = { judge: "", said: {}, order: shuffled(data.pairs.map((_, place) => place)), place: 0 }

function shuffled(places) {
  for (let last = places.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [places[last], places[other]] = [places[other], places[last]]
  }
  return places
}

function recall() {
  try {
    const found = JSON.parse(localStorage.getItem(kept))
    if (found && found.order.length === data.pairs.length) Object.assign(state, found)
  } catch { /* nothing was kept, or the browser keeps nothing for files */ }
}

function keep() {
  try { localStorage.setItem(kept, JSON.stringify(state)) } catch { /* the file remains */ }
}

function show() {
  const finished = state.place >= data.pairs.length
  at("pair").hidden = finished
  at("done").hidden = !finished
  if (!finished) {
    const pair = data.pairs[state.order[state.place]]
    at("place").textContent = `Pair ${state.place + 1} of ${data.pairs.length}`
    at("prompt").textContent = pair.prompt
    for (const side of ["left", "right"]) at(side).textContent = pair[side]
    for (const choice of ["left", "right", "tie"]) at(choice).setAttribute("aria-pressed", String(state.said[pair.id] === choice))
  }
  at("back").disabled = state.place === 0
  const count = Object.keys(state.said).length
  at("count").textContent = `${count} judged`
  const returned = { format: data.format, pairs: data.pairs_fingerprint, judge: state.judge.trim() || "anonymous", judgements: state.said }
  at("file").href = `data:application/json;charset=utf-8,${encodeURIComponent(JSON.stringify(returned, null, 1))}`
}

function choose(choice) {
  if (state.place >= data.pairs.length) return
  state.said[data.pairs[state.order[state.place]].id] = choice
  go(state.place + 1)
}

function go(place) {
  state.place = Math.max(0, place)
  keep()
  show()
}

for (const choice of ["left", "right", "tie"]) at(choice).addEventListener("click", () => choose(choice))
at("back").addEventListener("click", () => go(state.place - 1))
at("judge").addEventListener("input", event => { state.judge = event.target.value; keep(); show() })
document.addEventListener("keydown", event => {
  if (event.target === at("judge") || event.ctrlKey || event.metaKey || event.altKey) return
  const choice = { 1: "left", 2: "right", 0: "tie", "১": "left", "২": "right", "০": "tie" }[event.key]
  if (choice) choose(choice)
  if (event.key === "Backspace") { event.preventDefault(); go(state.place - 1) }
})

recall()
at("judge").value = state.judge
show()
