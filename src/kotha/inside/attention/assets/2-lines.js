// Lines: who looks on the left, who is looked at on the right; the stronger the line, the more.

const MOST_LINES = 4000
const LINE_HEIGHT = 30

function linesOf(map, heads, only, other) {
  const found = []
  for (const head of heads) {
    for (let query = 0; query < map.rows; query++) {
      if (only !== null && query !== only) continue
      for (let key = 0; key < map.columns; key++) {
        const share = weight(map, head, query, key, other)
        if (share >= .005) found.push({ head, query, key, share })
      }
    }
  }
  return found.sort((a, b) => b.share - a.share)
}

function drawLines(svg, map, heads, only, other) {
  const found = linesOf(map, heads, only, other)
  const paths = found.slice(0, MOST_LINES).reverse().map(({ head, query, key, share }) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path")
    const [from, to] = [query, key].map(place => (place + .5) * LINE_HEIGHT)
    path.setAttribute("d", `M0 ${from}C45 ${from} 55 ${to} 100 ${to}`)
    path.style.stroke = heads.length === 1 ? "var(--accent)" : hueOf(head, map.heads)
    path.style.strokeOpacity = Math.min(1, share ** .8)
    path.style.strokeWidth = `${.8 + 3 * share}px`
    return path
  })
  svg.replaceChildren(...paths)
  return Math.max(0, found.length - MOST_LINES)
}

function linesPanel(map, other, look) {
  const heads = [...state.heads].sort((a, b) => a - b)
  const height = LINE_HEIGHT * Math.max(map.rows, map.columns)
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg")
  svg.setAttribute("viewBox", `0 0 100 ${height}`)
  svg.setAttribute("preserveAspectRatio", "none")
  svg.setAttribute("aria-hidden", "true")
  svg.style.height = `${height}px`
  const keys = data.lines[map.keys].map((_, place) =>
    make("li", { style: { height: `${LINE_HEIGHT}px` } },
      make("span", { class: "token" }, pieceOf(map.keys, place), make("span", { class: "value" }))))
  const queries = data.lines[map.queries].map((_, place) => {
    const back = () => look(state.row)
    const pin = () => { state.row = state.row === place ? null : place; look(state.row) }
    const events = { onmouseenter: () => look(place), onmouseleave: back, onfocus: () => look(place), onblur: back, onclick: pin }
    const button = make("button", { class: "token", type: "button", "aria-pressed": "false", ...events }, pieceOf(map.queries, place))
    return make("li", { style: { height: `${LINE_HEIGHT}px` } }, button)
  })
  const readout = make("output", { class: "readout", "aria-live": "polite" })

  // Everything, or one row alone with its weights written beside those it looks at.
  function draw(only) {
    const left = drawLines(svg, map, heads, only, other)
    const mean = key => heads.reduce((sum, head) => sum + weight(map, head, only, key, other), 0) / heads.length
    const shares = only === null ? null : Array.from({ length: map.columns }, (_, key) => mean(key))
    keys.forEach((item, key) => {
      const share = shares?.[key] ?? 0
      item.firstChild.style.background = shares ? `color-mix(in srgb, var(--accent) ${Math.round(60 * Math.sqrt(share))}%, transparent)` : ""
      item.firstChild.classList.toggle("far", shares !== null && share < .005)
      item.querySelector(".value").textContent = shares && share >= .005 ? shown(share) : ""
    })
    queries.forEach((item, query) => {
      item.firstChild.setAttribute("aria-pressed", String(query === state.row))
      item.firstChild.classList.toggle("far", only !== null && query !== only)
    })
    const best = shares && strongest(shares)
    const many = heads.length === 1 ? "" : ` (mean of ${heads.length} heads)`
    readout.textContent = shares === null
      ? (left ? `The ${left.toLocaleString("en")} faintest lines are left out; point at a piece to see all of its row.` : "")
      : `${textOf(map.queries, only)} looks most at ${textOf(map.keys, best)}: ${shown(shares[best])}${many}`
  }
  draw(state.row)
  const box = make("div", { class: "lines" },
    make("h4", { class: "left" }, "who looks"), make("h4"), make("h4", {}, "at whom"),
    make("ol", { class: "left" }, ...queries), svg, make("ol", { class: "right" }, ...keys))
  return { parts: [readout, box], draw }
}

function viewLines() {
  const map = chosenMap()
  const caption = "Each line is one look; its strength is the weight. Point at a piece on the left, or reach it with Tab, to see its row alone; press it to keep the row."
  const panels = []
  const look = only => panels.forEach(panel => panel.draw(only))
  return [make("p", { class: "caption" }, caption), besides(map, other => {
    panels.push(linesPanel(map, other, look))
    return panels.at(-1).parts
  })]
}
