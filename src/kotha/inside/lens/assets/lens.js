// The lens: a cell for each layer at each position, and what it considered when it is pointed at.

const data = JSON.parse(document.getElementById("data").textContent)
const table = document.getElementById("lens")
const detail = document.getElementById("detail")
const asPercent = share => `${(100 * share).toFixed(share < .1 ? 1 : 0)} %`
const nameOf = layer => layer === 0 ? "embedding" : `layer ${layer - 1}`

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value)
  }
  element.append(...children)
  return element
}

function bar(each) {
  const fill = make("i")
  fill.style.width = `${100 * each.probability}%`
  return make("li", {}, make("span", { lang: "bn" }, each.text), make("div", { class: "bar" }, fill), make("span", {}, asPercent(each.probability)))
}

function tell(layer, place) {
  const said = data.layers[layer].positions[place]
  const answer = data.layers.at(-1).positions[place].best[0]
  for (const cell of table.querySelectorAll("[aria-current]")) cell.removeAttribute("aria-current")
  cellAt(layer, place).setAttribute("aria-current", "true")
  detail.replaceChildren(
    make("h3", {}, `${data.family === "bert" ? "At" : "After"} ${data.positions[place].text}, ${nameOf(layer)}`),
    make("ol", { class: "bars" }, ...said.best.map(bar)),
    make("p", {}, `The final answer ${answer.text} stands at place ${said.rank_of_answer.toLocaleString("en")}, with ${asPercent(said.probability_of_answer)}.`),
    make("p", {}, `${said.kl_nats.toFixed(3)} nats from the final distribution; entropy ${said.entropy_nats.toFixed(3)} nats.`))
}

const cellAt = (layer, place) => table.tBodies[0].rows[place].cells[layer + 1].firstChild

function cell(layer, place) {
  const said = data.layers[layer].positions[place], [best] = said.best
  const button = make("button", { class: said.rank_of_answer === 1 ? "cell answer" : "cell", type: "button", tabindex: layer || place ? "-1" : "0" },
    make("span", { lang: "bn" }, best.text), make("small", {}, asPercent(best.probability)))
  button.style.setProperty("--share", `${Math.round(70 * best.probability)}%`)
  button.addEventListener("mouseenter", () => tell(layer, place))
  button.addEventListener("focus", () => tell(layer, place))
  button.addEventListener("click", () => button.focus())
  button.addEventListener("keydown", event => {
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key]
    if (!step) return
    event.preventDefault()
    const fit = (value, most) => Math.max(0, Math.min(most - 1, value))
    cellAt(fit(layer + step[0], data.layers.length), fit(place + step[1], data.positions.length)).focus()
  })
  return make("td", {}, button)
}

table.append(
  make("thead", {}, make("tr", {}, make("th", { scope: "col" }, data.family === "bert" ? "at" : "after"), ...data.layers.map((_, layer) => make("th", { scope: "col" }, nameOf(layer))))),
  make("tbody", {}, ...data.positions.map((piece, place) => {
    const written = data.written_from !== null && place >= data.written_from
    return make("tr", {}, make("th", { scope: "row", lang: "bn", class: written ? "written" : null }, piece.text), ...data.layers.map((_, layer) => cell(layer, place)))
  })))
tell(data.layers.length - 1, data.positions.length - 1)
