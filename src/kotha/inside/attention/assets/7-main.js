// Tabs, controls, and drawing again when something was chosen.

const VIEWS = [
  ["image", "Image", viewImage, () => Boolean(data.image)],
  ["lines", "Lines", viewLines, () => true],
  ["grid", "All heads", viewGrid, () => true],
  ["matrix", "One head", viewMatrix, () => true],
  ["steps", "Step by step", viewSteps, () => data.steps.length > 0],
].filter(([, , , fits]) => fits())

const tabs = document.querySelector(".tabs")
const view = document.getElementById("view")
const mapSelect = document.getElementById("map")
const headChips = document.getElementById("heads")
const otherBox = document.getElementById("other")

const otherName = map => map.causal ? "without the mask" : "under a mask that hides what comes after"

// A view of the head as it is, and beside it the same head under the other mask where that was asked for.
function besides(map, panel) {
  if (!state.other || !map.asOther) return make("div", { class: "panels" }, make("div", { class: "panel" }, ...panel(false)))
  const names = [
    [map.causal ? "With the mask" : "Without a mask", "what this model does", false],
    [map.causal ? "Without the mask" : "With a mask that hides what comes after", "what the same head would see", true],
  ]
  return make("div", { class: "panels" }, ...names.map(([name, about, other]) =>
    make("div", { class: "panel" }, make("h3", {}, name, make("small", {}, ` ${about}`)), ...panel(other))))
}

function choose(head) {
  state.head = Math.min(head, chosenMap().heads - 1)
  state.heads = new Set([state.head])
}

// Of the lines several heads can be seen together; elsewhere one.
function press(head) {
  if (state.view !== "lines") choose(head)
  else {
    if (state.heads.has(head) && state.heads.size > 1) state.heads.delete(head)
    else state.heads.add(head)
    state.head = state.heads.has(head) ? head : [...state.heads][0]
  }
  show(state.view)
}

function pressAll() {
  const all = chosenMap().heads
  state.heads = state.heads.size === all ? new Set([state.head]) : new Set(Array(all).keys())
  show(state.view)
}

function drawControls() {
  const map = chosenMap()
  mapSelect.value = String(state.map)
  const several = state.view === "lines"
  const chips = Array.from({ length: map.heads }, (_, head) => {
    const pressed = several ? state.heads.has(head) : head === state.head
    const hue = several && state.heads.size > 1 ? hueOf(head, map.heads) : "var(--accent)"
    return make("button", { type: "button", "aria-pressed": String(pressed), "aria-label": `head ${map.names[head]}`, style: { "--hue": hue }, onclick: () => press(head) }, String(map.names[head]))
  })
  if (several && map.heads > 1) {
    chips.push(make("button", { type: "button", "aria-pressed": String(state.heads.size === map.heads), style: { "--hue": "var(--soft)" }, onclick: pressAll }, "all"))
  }
  headChips.replaceChildren(...chips)
  document.getElementById("other-field").hidden = !map.asOther || !["lines", "matrix"].includes(state.view)
  document.getElementById("other-label").textContent = `beside it, ${otherName(map)}`
  document.querySelector(".controls").hidden = state.view === "grid"
}

function show(name) {
  stop()
  const focused = document.activeElement?.getAttribute("aria-label")
  state.view = name
  for (const tab of tabs.children) {
    tab.setAttribute("aria-selected", String(tab.id === `tab-${name}`))
    tab.tabIndex = tab.id === `tab-${name}` ? 0 : -1
  }
  view.setAttribute("aria-labelledby", `tab-${name}`)
  const parts = VIEWS.find(([each]) => each === name)[2]()
  view.replaceChildren(...parts)
  drawControls()
  if (focused) [...document.querySelectorAll("[aria-label]")].find(each => each.getAttribute("aria-label") === focused)?.focus()
}

function makeTabs() {
  for (const [name, label] of VIEWS) {
    tabs.append(make("button", { role: "tab", type: "button", id: `tab-${name}`, "aria-controls": "view", onclick: () => show(name) }, label))
  }
  tabs.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    const place = VIEWS.findIndex(([name]) => name === state.view)
    const [next] = VIEWS[(place + step + VIEWS.length) % VIEWS.length]
    show(next)
    document.getElementById(`tab-${next}`).focus()
  })
}

function makeControls() {
  const several = kinds().length > 1
  for (const [kind, maps] of kinds()) {
    const options = maps.map(map => make("option", { value: String(data.maps.indexOf(map)) }, several ? `${kind}: layer ${map.layer}` : `layer ${map.layer}`))
    mapSelect.append(...options)
  }
  mapSelect.addEventListener("change", () => {
    state.map = Number(mapSelect.value)
    state.row = null
    const kept = [...state.heads].filter(head => head < chosenMap().heads)
    state.heads = new Set(kept.length ? kept : [0])
    state.head = Math.min(state.head, chosenMap().heads - 1)
    show(state.view)
  })
  otherBox.addEventListener("change", () => { state.other = otherBox.checked; show(state.view) })
}

readPalette()
makeTabs()
makeControls()
state.heads = new Set(Array(Math.min(chosenMap().heads, 8)).keys())
show(VIEWS[0][0])
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readPalette(); show(state.view) })
let width = innerWidth
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; if (state.view === "matrix") show("matrix") } })
