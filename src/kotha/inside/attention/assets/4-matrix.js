// One head as a matrix: every weight, its row and its row's sum.

const LARGEST_CELL = 38
const SMALLEST_CELL = 17
// From this size on a cell has room for its number.
const ROOMY_CELL = 32

function paintMatrix(canvas, map, head, size, other) {
  const scale = Math.min(window.devicePixelRatio || 1, 12000 / (size * Math.max(map.rows, map.columns)))
  canvas.style.width = `${size * map.columns}px`
  canvas.style.height = `${size * map.rows}px`
  canvas.width = Math.round(size * map.columns * scale)
  canvas.height = Math.round(size * map.rows * scale)
  const brush = canvas.getContext("2d")
  brush.scale(scale, scale)
  brush.textAlign = "center"
  brush.textBaseline = "middle"
  brush.font = `${Math.round(size * .32)}px ui-monospace, monospace`
  for (let query = 0; query < map.rows; query++) {
    for (let key = 0; key < map.columns; key++) {
      const share = weight(map, head, query, key, other)
      const hidden = isHidden(map, query, key, other)
      const colour = hidden ? between(palette.paper, palette.line, .55) : shade(share)
      brush.fillStyle = css(colour)
      brush.fillRect(key * size + .5, query * size + .5, size - 1, size - 1)
      if (size >= ROOMY_CELL && !hidden && share >= .005) {
        brush.fillStyle = Math.sqrt(share) > .55 ? css(palette.paper) : css(palette.ink)
        brush.fillText(share >= .9995 ? "1" : share.toFixed(2).slice(1), (key + .5) * size, (query + .52) * size)
      }
    }
  }
  const [query, key] = state.cell
  brush.strokeStyle = css(palette.warm)
  brush.lineWidth = 2
  brush.strokeRect(key * size + 1, query * size + 1, size - 2, size - 2)
}

function matrixPanel(map, other, size, moved) {
  const head = state.head
  const labels = line => data.lines[line].map((_, place) => pieceOf(line, place, "tag"))
  const sides = labels(map.queries), tops = labels(map.keys)
  const sums = sides.map((_, query) => make("span", {}, shown(row(map, head, query, other).reduce((a, b) => a + b, 0))))
  const canvas = make("canvas", { tabindex: "0", role: "img", onkeydown: press, onmousemove: point, onclick: point })
  canvas.setAttribute("aria-label", `${headName(map, head)}: ${map.rows} by ${map.columns} weights; arrow keys move from one to the next`)

  function press(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -map.columns], End: [0, map.columns] }[event.key]
    if (!step) return
    event.preventDefault()
    moved(state.cell[0] + step[0], state.cell[1] + step[1])
  }
  function point(event) {
    const box = canvas.getBoundingClientRect()
    moved(Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size))
  }
  function draw() {
    const [query, key] = state.cell
    paintMatrix(canvas, map, head, size, other)
    sides.forEach((label, place) => label.classList.toggle("now", place === query))
    tops.forEach((label, place) => label.classList.toggle("now", place === key))
    sums.forEach((label, place) => label.classList.toggle("now", place === query))
  }
  const box = make("div", { class: "matrix", style: { "--cell": `${size}px` } },
    make("span", { class: "corner" }), make("div", { class: "tops" }, ...tops), make("span", { class: "sum-name" }, "sum"),
    make("div", { class: "sides" }, ...sides), canvas, make("div", { class: "row-sums" }, ...sums))
  return { box: make("div", { class: "scroll" }, box), draw }
}

function cellSize(map, count) {
  const wide = document.getElementById("view").clientWidth
  const room = count > 1 && wide > 800 ? wide / 2 - 20 : wide
  const labels = wide < 540 ? 140 : 180
  return Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, Math.floor((room - labels) / map.columns)))
}

function viewMatrix() {
  const map = chosenMap(), head = state.head
  const readout = make("output", { class: "readout", "aria-live": "polite" })
  const panels = []
  const fit = (value, most) => Math.max(0, Math.min(most - 1, value))

  function moved(query, key) {
    state.cell = [fit(query, map.rows), fit(key, map.columns)]
    panels.forEach(panel => panel.draw())
    tell()
  }
  function tell() {
    const [query, key] = state.cell
    const value = other => isHidden(map, query, key, other) ? "hidden by the mask" : shown(weight(map, head, query, key, other))
    const beside = state.other && map.asOther ? `; ${otherName(map)}: ${value(true)}` : ""
    readout.replaceChildren(make("b", {}, textOf(map.queries, query)), " looks at ", make("b", {}, textOf(map.keys, key)), `: ${value(false)}${beside}`)
  }
  state.cell = [fit(state.cell[0], map.rows), fit(state.cell[1], map.columns)]
  const caption = "Rows look, columns are looked at; the darker, the more (the shade grows with the root of the weight). Point at a cell, or move with the arrow keys. Grey is what the mask hides."
  const size = cellSize(map, state.other && map.asOther ? 2 : 1)
  const parts = besides(map, other => {
    const panel = matrixPanel(map, other, size, moved)
    panels.push(panel)
    return [panel.box]
  })
  panels.forEach(panel => panel.draw())
  tell()
  return [make("p", { class: "caption" }, caption), readout, parts]
}
