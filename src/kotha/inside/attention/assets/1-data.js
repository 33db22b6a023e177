// The page's data, what the reader has chosen, and the few tools that every view uses.

const data = JSON.parse(document.getElementById("data").textContent)

function numbers(packed) {
  const bytes = Uint8Array.from(atob(packed), each => each.charCodeAt(0))
  return new Uint16Array(bytes.buffer)
}

for (const map of data.maps) {
  [map.heads, map.rows, map.columns] = map.shape
  map.asIs = numbers(map.weights)
  map.asOther = map.other === null ? null : numbers(map.other)
}

const state = { view: "lines", map: 0, head: 0, heads: new Set(), other: false, row: null, cell: [0, 0], step: 0, patch: 0 }

const chosenMap = () => data.maps[state.map]

// How much a row looks at a column; `other` asks for the other mask.
function weight(map, head, row, column, other = false) {
  return (other ? map.asOther : map.asIs)[(head * map.rows + row) * map.columns + column] / data.steps_of_weight
}

function row(map, head, place, other = false) {
  return Array.from({ length: map.columns }, (_, column) => weight(map, head, place, column, other))
}

const isHidden = (map, query, key, other = false) => map.causal !== other && map.queries === map.keys && key > query

const strongest = weights => weights.reduce((best, each, place) => each > weights[best] ? place : best, 0)

const shown = share => share.toFixed(3)

// An element with attributes and children; text is always text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else if (name === "style") for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set)
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children)
  return element
}

const isWritten = (line, place) => data.written_from !== null && line === data.writes && place >= data.written_from

// A piece as an inline element; what the model wrote is underlined, part of a character is set as code.
function pieceOf(line, place, name = "word") {
  const piece = data.lines[line][place]
  const names = [name, piece.part ? "part" : "", isWritten(line, place) ? "written" : ""].filter(Boolean).join(" ")
  const about = piece.id === null ? null : `position ${place + 1}, token ${piece.id}`
  return make("span", { class: names, title: about, lang: "bn" }, piece.text)
}

const textOf = (line, place) => data.lines[line][place].text

const headName = (map, head) => `layer ${map.layer}, head ${map.names[head]}`

// -- colours ---------------------------------------------------------------------------------------------------------

let palette

// Colours of the page as numbers, for what is painted pixel by pixel.
function readPalette() {
  const style = getComputedStyle(document.documentElement)
  const channels = name => style.getPropertyValue(name).trim().slice(1).match(/../g).map(pair => parseInt(pair, 16))
  palette = { accent: channels("--accent"), paper: channels("--paper"), line: channels("--line"), warm: channels("--warm"), ink: channels("--ink") }
}

const between = (from, to, share) => from.map((each, channel) => Math.round(each + (to[channel] - each) * share))

// A shade for a weight: the root lets faint looks be seen.
const shade = share => between(palette.paper, palette.accent, Math.sqrt(share))

const css = channels => `rgb(${channels.join(" ")})`

// The first head takes the page's own green, the others go around the circle from there.
const hueOf = (head, count) => head === 0 ? "var(--accent)" : `oklch(0.62 0.14 ${(165 + 360 * head / count) % 360})`

// A heat map, one pixel a weight; a mask's shadow is grey.
function paintTiny(canvas, map, head, rows = null) {
  const places = rows ?? Array.from({ length: map.rows }, (_, place) => place)
  canvas.width = map.columns
  canvas.height = places.length
  const brush = canvas.getContext("2d")
  const picture = brush.createImageData(canvas.width, canvas.height)
  places.forEach((place, line) => {
    for (let column = 0; column < map.columns; column++) {
      const hidden = isHidden(map, place, column)
      const colour = hidden ? between(palette.paper, palette.line, .55) : shade(weight(map, head, place, column))
      picture.data.set([...colour, 255], 4 * (line * map.columns + column))
    }
  })
  brush.putImageData(picture, 0, 0)
  return canvas
}
