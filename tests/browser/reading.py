"""What a reader of a page needs: text that stands out, and a page that asks nobody and breaks nowhere."""

import re

# Text that stands out too little from what is behind it (WCAG 2.2, 1.4.3).
CONTRAST = """
([shown, leave]) => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const known = {};  // asking the canvas takes time, and a page has few colours
  const rgba = (text) => known[text] ??= painted(text);
  const painted = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] > 200) return color;
    }
    return [255, 255, 255, 255];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const faint = [];
  for (const element of document.querySelectorAll(shown.join())) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent.trim()).join("");
    if (!text || element.closest(leave) || !element.checkVisibility()) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${text.slice(0, 60)}`);
  }
  return faint;
}
"""
ELSEWHERE = re.compile(r"^https?://(?!127\.0\.0\.1)")


def faint(page, shown: list[str], leave: str) -> list[str]:
    """Ratio and beginning of each text under 4.5 : 1 in the elements `shown`, but for those inside `leave`."""
    return page.evaluate(CONTRAST, [shown, leave])


class Heard:
    """What a page asks of other machines, which gets no answer, and the errors that its console shows.

    `allowed` are addresses, and that they are out of reach is no error; neither is what holds a text of `harmless`.
    """

    def __init__(self, page, allowed: frozenset[str] | set[str] = frozenset(), harmless: tuple[str, ...] = ()):
        self.allowed, self.harmless, self.asked, self.errors = allowed, ("ERR_FAILED", *harmless), [], []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.route(ELSEWHERE, lambda route: route.abort())

    def forget(self) -> None:
        self.asked.clear(), self.errors.clear()

    def said(self) -> dict[str, list[str]]:
        """Since the last `forget`."""
        return {
            "asked": [url for url in self.asked if ELSEWHERE.match(url) and url not in self.allowed],
            "errors": [text for text in self.errors if not any(known in text for known in self.harmless)],
        }
