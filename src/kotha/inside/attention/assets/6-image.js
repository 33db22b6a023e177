// An image: where the class token, or one patch, looks.

const pixels = data.image ? Uint8Array.from(atob(data.image.pixels), each => each.charCodeAt(0)) : null

// The image, veiled where the head looks least and warm where it looks most; position 0 is the class token.
function paintLook(canvas, map, head, query) {
  const { rows, columns, height, width } = data.image
  canvas.width = width
  canvas.height = height
  const brush = canvas.getContext("2d")
  const picture = brush.createImageData(width, height)
  const weights = row(map, head, query).slice(1)
  const least = Math.min(...weights)
  const span = Math.max(...weights) - least || 1
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const patch = Math.floor(y * rows / height) * columns + Math.floor(x * columns / width)
      const place = y * width + x
      const own = [...pixels.subarray(3 * place, 3 * place + 3)]
      const share = (weights[patch] - least) / span
      const veiled = between(own, palette.paper, .5 * (1 - share))
      picture.data.set([...between(veiled, palette.warm, .6 * share), 255], 4 * place)
    }
  }
  brush.putImageData(picture, 0, 0)
  return canvas
}

function viewImage() {
  const map = chosenMap(), { rows, columns } = data.image
  const large = make("canvas", { class: "look crisp", tabindex: "0", role: "img", onclick: point, onkeydown: press })
  large.setAttribute("aria-label", "The image; arrow keys choose a patch, Escape the class token")
  const readout = make("output", { class: "readout", "aria-live": "polite" })
  const whole = make("button", { class: "plain", type: "button", onclick: () => look(0) }, "class token")

  function look(position) {
    state.patch = position
    paintLook(large, map, state.head, position)
    const weights = row(map, state.head, position)
    const best = 1 + strongest(weights.slice(1))
    const who = position === 0 ? "The class token" : `Patch ${textOf("patches", position)}`
    readout.textContent = `${who} looks most at patch ${textOf("patches", best)}: ${shown(weights[best])}; at the class token: ${shown(weights[0])}`
  }
  function point(event) {
    const box = large.getBoundingClientRect()
    const place = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)))
    look(1 + place((event.clientY - box.top) / box.height, rows) * columns + place((event.clientX - box.left) / box.width, columns))
  }
  function press(event) {
    const step = { ArrowUp: -columns, ArrowDown: columns, ArrowLeft: -1, ArrowRight: 1, Escape: -state.patch }[event.key]
    if (step === undefined) return
    event.preventDefault()
    look(Math.max(0, Math.min(rows * columns, state.patch + step)))
  }
  look(state.patch)
  const caption = "Each picture is stretched from its least looked-at patch (pale) to its most looked-at (warm); the numbers are below it. Press a patch to see where that one looks."
  const thumbnail = (each, head) => paintLook(make("canvas", { class: "crisp" }), each, head, 0)
  return [make("p", { class: "caption" }, caption),
    make("div", { class: "panels" },
      make("div", { class: "panel" }, make("h3", {}, headName(map, state.head)), large, readout, whole),
      make("div", { class: "panel" }, make("h3", {}, "Every head, from the class token"), headGrid(data.maps, "image", thumbnail, 400)))]
}
