// Writing, step by step: the row that each new piece was written from, in every head.

let playing = null

function stop() {
  clearInterval(playing)
  playing = null
}

const asPercent = share => `${(100 * share).toFixed(1)} %`

function stepText(map, step, weights) {
  const last = step.row
  const places = map.keys === data.writes ? last + 1 : map.columns
  const chips = Array.from({ length: places }, (_, place) => {
    const chip = pieceOf(map.keys, place, "chip")
    chip.style.setProperty("--share", `${Math.round(60 * Math.sqrt(weights[place]))}%`)
    if (map.keys === data.writes && place === last) chip.classList.add("from")
    if (weights[place] >= .05) chip.append(make("small", {}, weights[place].toFixed(2).slice(1)))
    return chip
  })
  const added = pieceOf(data.writes, last + 1, "chip")
  added.classList.add("new")
  const arrow = make("span", { class: "arrow" }, "→")
  if (map.keys === data.writes) return [make("p", { class: "text" }, ...chips, arrow, added)]
  const before = Array.from({ length: last + 1 }, (_, place) => pieceOf(data.writes, place, "chip"))
  before[last].classList.add("from")
  return [make("p", { class: "text" }, ...chips), make("p", { class: "text" }, ...before, arrow, added)]
}

function stepBars(step) {
  const taken = data.lines[data.writes][step.row + 1]
  const among = step.best.some(each => each.id === taken.id)
  const all = among ? step.best : [...step.best, { ...taken, probability: step.probability }]
  return make("ol", { class: "bars" }, ...all.map(each => {
    const bar = make("div", { class: "bar" }, make("i", { style: { width: `${100 * each.probability}%` } }))
    const word = make("span", { lang: "bn", class: each.part ? "part" : "" }, each.text)
    return make("li", { class: each.id === taken.id ? "taken" : "" }, word, bar, make("span", {}, asPercent(each.probability)))
  }))
}

function stepStrips(map, step) {
  const alike = data.maps.filter(each => each.kind === map.kind)
  return make("div", { class: "strips" }, ...alike.flatMap(each => Array.from({ length: each.heads }, (_, head) => {
    const weights = row(each, head, step.row)
    const best = strongest(weights)
    const canvas = paintTiny(make("canvas", { class: "crisp" }), each, head, [step.row])
    const now = each === map && head === state.head
    const opens = { class: "strip", type: "button", "aria-pressed": String(now), onclick: () => open(each, head, "steps") }
    return make("button", opens, make("span", {}, `layer ${each.layer} · ${each.names[head]}`), canvas,
      make("span", { lang: "bn" }, `${textOf(each.keys, best)} ${weights[best].toFixed(2)}`))
  })))
}

function viewSteps() {
  const writing = data.maps.filter(map => map.queries === data.writes)
  if (!writing.includes(chosenMap())) state.map = data.maps.indexOf(writing.at(-1))
  const map = chosenMap()
  const count = data.steps.length
  const body = make("div")
  const slider = make("input", { type: "range", min: "1", max: String(count), value: String(state.step + 1), "aria-label": "Step" })
  const counter = make("output", { "aria-live": "polite" })
  const button = (label, name, act) => make("button", { class: "plain", type: "button", "aria-label": name, onclick: act }, label)
  const back = button("←", "Step back", () => go(state.step - 1))
  const next = button("→", "Step on", () => go(state.step + 1))
  const play = button("Play", "Play", toggle)

  function go(place) {
    state.step = Math.max(0, Math.min(count - 1, place))
    const step = data.steps[state.step]
    slider.value = String(state.step + 1)
    back.disabled = state.step === 0
    next.disabled = state.step === count - 1
    counter.textContent = `piece ${state.step + 1} of ${count}, given ${asPercent(step.probability)}`
    const weights = row(map, Math.min(state.head, map.heads - 1), step.row)
    body.replaceChildren(
      make("h3", { class: "kind" }, `What ${headName(map, state.head)} looked at when it was written`),
      ...stepText(map, step, weights),
      make("div", { class: "panels" },
        make("div", { class: "panel" }, make("h3", {}, "What the model would write here"), stepBars(step)),
        make("div", { class: "panel" }, make("h3", {}, "Every head at this moment"), stepStrips(map, step))))
  }
  function toggle() {
    if (playing) stop()
    else {
      if (state.step === count - 1) go(0)
      playing = setInterval(() => state.step < count - 1 ? go(state.step + 1) : toggle(), 900)
    }
    play.textContent = playing ? "Pause" : "Play"
  }
  slider.addEventListener("input", () => go(Number(slider.value) - 1))
  go(state.step)
  const caption = "The model writes one piece at a time. Each time, the piece with the frame looks back, and what it finds decides what comes next (→)."
  return [make("p", { class: "caption" }, caption), make("div", { class: "player" }, back, slider, next, play, counter), body]
}
