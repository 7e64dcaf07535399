// The map: its colors, its zoom, and what a mark or a square is, on hover and on a tap.
(() => {
  const svg = document.querySelector("svg.map");
  if (!svg) return;
  const plane = svg.querySelector(".plane");
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const spots = [...svg.querySelectorAll("[data-x]")].map((mark) => ({ mark, text: story(mark), x: +mark.dataset.x, y: +mark.dataset.y }));
  const tip = make("div", { className: "tip", id: "tip", role: "status", hidden: true });
  document.body.append(tip);
  let on = null, scale = 1, left = 0, top = 0, held = null;

  /** What a mark is; the browser's own tip would come too late, and not on a tap. */
  function story(mark) {
    const title = mark.querySelector("title");
    const text = title.textContent.replaceAll(" · ", "\n");
    title.remove();
    return text;
  }

  function at(event) {
    const turn = plane.getScreenCTM();
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(turn.inverse());
    return { x: place.x, y: place.y, unit: turn.a };
  }

  function nearest(event) {
    const { x, y, unit } = at(event);
    const reach = (event.pointerType === "touch" ? 22 : 12) / unit;
    let best = null, least = reach * reach;
    for (const spot of spots) {
      const far = (spot.x - x) ** 2 + (spot.y - y) ** 2;
      if (far <= least) { best = spot; least = far; }
    }
    const cell = event.target.closest?.(".cell");
    return best ?? (cell && { mark: cell, text: cell.dataset.story.replaceAll(" · ", "\n") });
  }

  function show(event) {
    hide();
    const best = nearest(event);
    if (!best) return;
    on = best.mark;
    on.classList.add("on");
    tip.textContent = best.text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const above = event.clientY - box.height - 12;
    tip.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${above < 6 ? event.clientY + 18 : above}px`;
  }

  function hide() {
    on?.classList.remove("on");
    on = null;
    tip.hidden = true;
  }

  /** Zoom by a factor; what is at a place of the drawing stays there. */
  function zoom(factor, x = width / 2, y = height / 2) {
    const next = Math.min(Math.max(scale * factor, 1), 40);
    left = x - (x - left) * next / scale;
    top = y - (y - top) * next / scale;
    scale = next;
    place();
  }

  function place() {
    left = Math.min(0, Math.max(left, width * (1 - scale)));
    top = Math.min(0, Math.max(top, height * (1 - scale)));
    plane.setAttribute("transform", `translate(${left} ${top}) scale(${scale})`);
    svg.style.setProperty("--zoom", Math.sqrt(scale) * Math.sqrt(Math.sqrt(scale)));
    svg.classList.toggle("zoomed", scale > 1);
    hide();
  }

  svg.addEventListener("pointermove", (event) => {
    if (!held) { show(event); return; }
    const unit = svg.getScreenCTM().a;
    left += (event.clientX - held.x) / unit;
    top += (event.clientY - held.y) / unit;
    held = { x: event.clientX, y: event.clientY };
    place();
  });
  svg.addEventListener("pointerdown", (event) => {
    show(event);
    if (scale > 1 && event.pointerType !== "touch") held = { x: event.clientX, y: event.clientY };
  });
  addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
  addEventListener("scroll", hide, { passive: true, capture: true });
  svg.addEventListener("dblclick", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    zoom(2, place.x, place.y);
  });

  svg.setAttribute("tabindex", "0");
  const steps = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
  svg.addEventListener("keydown", (event) => {
    if (event.key === "+") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else if (event.key === "0") zoom(0);
    else if (event.key in steps && scale > 1) { left += steps[event.key][0]; top += steps[event.key][1]; place(); }
    else return;
    event.preventDefault();
  });
  byId("zoom-in").addEventListener("click", () => zoom(1.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  byId("zoom-all").addEventListener("click", () => zoom(0));

  document.getElementsByName("map-color").forEach((choice) => choice.addEventListener("change", () => {
    svg.classList.toggle("labels", choice.value === "label");
    document.querySelector("#map .by-label").hidden = choice.value !== "label";
    document.querySelector("#map .by-value").hidden = choice.value === "label";
  }));
  byId("map-tools").hidden = false;
})();
