// All heads at once: layers down, heads across; one pixel a weight.

function open(map, head, view) {
  state.map = data.maps.indexOf(map)
  choose(head)
  show(view)
}

// Rows of small pictures, a row a layer, made by `picture(map, head)`.
function headGrid(maps, view, picture, room = 820) {
  const names = [...new Set(maps.flatMap(map => map.names))].sort((a, b) => a - b)
  const most = names.length
  const numbers = names.map(name => make("span", { class: "over" }, `head ${name}`))
  const cells = maps.flatMap(map => [
    make("span", { class: "name" }, `layer ${map.layer}`),
    ...names.map(name => {
      const head = map.names.indexOf(name)
      if (head < 0) return make("span", { class: "over" }, "pruned")
      const now = map === chosenMap() && head === state.head
      const opens = { class: "tile", type: "button", "aria-label": headName(map, head), "aria-current": String(now), onclick: () => open(map, head, view) }
      return make("button", opens, picture(map, head))
    }),
  ])
  const style = { "grid-template-columns": `max-content repeat(${most}, max-content)`, "--tile": `${Math.max(56, Math.min(150, Math.floor(room / most)))}px` }
  return make("div", { class: "scroll" }, make("div", { class: "grid", style }, make("span"), ...numbers, ...cells))
}

function kinds() {
  return [...new Set(data.maps.map(map => map.kind))].map(kind => [kind, data.maps.filter(map => map.kind === kind)])
}

function viewGrid() {
  const caption = "Every head as a small picture: rows look, columns are looked at. A diagonal looks at itself, one below it at the piece before; a first column rests on the start. Open one by pressing it."
  const thumbnail = (map, head) => {
    const canvas = paintTiny(make("canvas"), map, head)
    canvas.classList.toggle("crisp", Math.max(map.rows, map.columns) <= 64)
    return canvas
  }
  const parts = kinds().flatMap(([kind, maps]) => {
    const title = data.maps.length === maps.length ? [] : [make("h3", { class: "kind" }, kind)]
    return [...title, headGrid(maps, "matrix", thumbnail)]
  })
  return [make("p", { class: "caption" }, caption), ...parts]
}
