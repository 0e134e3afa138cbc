// Mouse, pen and fingers over one plane: draw with the left button, brightness with the right, move with the middle.

/** Wire a viewport. `hands` has begin, move, end, cancel, level, hover, wheel and `panning()`. */
export function wire(viewport, hands) {
  const { canvas } = viewport;
  const fingers = new Map();
  let doing = null; // draw, level, pan or pinch
  let last = null;

  const start = (event) => {
    if (event.pointerType === "touch") fingers.set(event.pointerId, event);
    if (fingers.size === 2) {
      if (doing === "draw") hands.cancel();
      doing = "pinch";
      return "pinch";
    }
    if (event.button === 2) return "level";
    if (event.button === 1 || hands.panning()) return "pan";
    return event.button === 0 ? "draw" : null;
  };

  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    if (!viewport.plane || (doing && doing !== "draw" && fingers.size < 1)) return;
    doing = start(event);
    last = { x: event.clientX, y: event.clientY };
    canvas.setPointerCapture(event.pointerId);
    canvas.closest("[tabindex]")?.focus({ preventScroll: true });
    event.preventDefault();
    if (doing === "draw" && !hands.begin(event)) doing = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!viewport.plane) return;
    if (!doing) return hands.hover(event);
    if (doing === "draw") {
      for (const each of event.getCoalescedEvents?.().length ? event.getCoalescedEvents() : [event]) hands.move(each);
      return hands.hover(event);
    }
    if (doing === "pinch") return pinch(event);
    const moved = { x: event.clientX - last.x, y: event.clientY - last.y };
    last = { x: event.clientX, y: event.clientY };
    if (doing === "level") hands.level(moved.x, moved.y);
    else viewport.pan(moved.x, moved.y);
    return undefined;
  });
  const stop = (event) => {
    fingers.delete(event.pointerId);
    const was = doing;
    if (!fingers.size) doing = null;
    if (was === "draw") (event.type === "pointerup" ? hands.end : hands.cancel)(event);
  };
  canvas.addEventListener("pointerup", stop);
  canvas.addEventListener("pointercancel", stop);
  canvas.addEventListener("pointerleave", () => hands.hover(null));
  let turned = 0;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) return viewport.zoomAt(event, Math.exp(-event.deltaY / 300));
    turned += event.deltaMode ? event.deltaY * 40 : event.deltaY; // a notch of a wheel is about 100
    const notches = Math.trunc(turned / 40);
    if (notches) {
      turned = 0;
      hands.wheel(Math.sign(notches) * Math.max(1, Math.round(Math.abs(notches) / 2.5)));
    }
    return undefined;
  }, { passive: false });

  function pinch(event) {
    if (!fingers.has(event.pointerId)) return;
    const [a, b] = [...fingers.values()];
    const before = { apart: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), x: (a.clientX + b.clientX) / 2, y: (a.clientY + b.clientY) / 2 };
    fingers.set(event.pointerId, event);
    const [c, d] = [...fingers.values()];
    const apart = Math.hypot(c.clientX - d.clientX, c.clientY - d.clientY);
    const middle = { clientX: (c.clientX + d.clientX) / 2, clientY: (c.clientY + d.clientY) / 2 };
    viewport.pan(middle.clientX - before.x, middle.clientY - before.y);
    if (before.apart > 0) viewport.zoomAt(middle, apart / before.apart);
  }
}
