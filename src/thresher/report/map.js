// The map: pointing at a mark, or tapping it, shows its row.
(() => {
  document.querySelectorAll("svg.map").forEach(hoverable);

  function hoverable(svg) {
    const spots = [...svg.querySelectorAll("[data-x]")].map((mark) => {
      const title = mark.querySelector("title");
      const text = title.textContent.replaceAll(" · ", "\n");
      title.remove();
      return { mark, text, x: +mark.dataset.x, y: +mark.dataset.y };
    });
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.id = "tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    document.body.append(tip);
    let on = null;

    function show(event) {
      const turn = svg.getScreenCTM();
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(turn.inverse());
      const reach = (event.pointerType === "touch" ? 22 : 12) / turn.a;
      let best = null, least = reach * reach;
      for (const spot of spots) {
        const far = (spot.x - at.x) ** 2 + (spot.y - at.y) ** 2;
        if (far <= least) { best = spot; least = far; }
      }
      hide();
      if (!best) return;
      on = best.mark;
      on.classList.add("on");
      tip.textContent = best.text;
      tip.hidden = false;
      const box = tip.getBoundingClientRect();
      const left = Math.min(event.clientX + 14, innerWidth - box.width - 6);
      const above = event.clientY - box.height - 12;
      tip.style.left = `${Math.max(6, left)}px`;
      tip.style.top = `${above < 6 ? event.clientY + 18 : above}px`;
    }

    function hide() {
      if (on) on.classList.remove("on");
      on = null;
      tip.hidden = true;
    }

    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    addEventListener("scroll", hide, { passive: true, capture: true });
  }
})();
