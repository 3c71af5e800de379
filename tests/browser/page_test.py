"""report.html in headless Chromium: loads without errors, pickers change what is shown, nothing is clipped or
too wide, and every number equals one in the files beside it. Arguments: chromium, the headlab program."""

import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

chromium, headlab = sys.argv[1:3]
del sys.argv[1:3]

PROBE = """
<script>
window.failures = [];
window.addEventListener('error', e => window.failures.push(String(e.message)));
</script>
"""

ASK = """
<script>
window.addEventListener('load', () => {
  const seen = {failures: window.failures};
  const root = document.documentElement;
  seen.page = root.scrollWidth; seen.window = innerWidth;
  const clipped = [];
  for (const at of document.querySelectorAll('p, th, td, h1, h2, h3, li, caption, summary, label, a, code')) {
    const style = getComputedStyle(at);
    if (style.overflowX === 'hidden' && at.scrollWidth > at.clientWidth + 1) clipped.push(at.textContent.slice(0, 40));
  }
  for (const svg of document.querySelectorAll('svg.picture')) {
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const own = text.getBoundingClientRect();
      if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1)
        clipped.push(text.textContent);
    }
  }
  seen.clipped = clipped;
  seen.unlabelled = [...document.querySelectorAll('svg[role=img], button, select, input')].filter(
    at => !(at.getAttribute('aria-label') || at.textContent || at.closest('label'))).length;
  const heads = [...document.querySelectorAll('.heads button')];
  seen.heads = heads.length;
  const said = document.getElementById('attention-said'), arcs = document.getElementById('arcs');
  // Without a ground of its own a dark page would show through where there is no weight, darker than much weight.
  const ground = document.querySelector('#matrix rect');
  seen.ground = ground && ground.getAttribute('fill');
  if (heads.length > 1) {
    const before = [said.textContent, arcs.innerHTML];
    heads[1].click();
    seen.headChanges = said.textContent !== before[0] && arcs.innerHTML !== before[1];
    seen.pressed = document.querySelectorAll('.heads button[aria-pressed=true]').length;
    const shown = arcs.innerHTML, picker = document.getElementById('example-picker');
    seen.examples = picker.options.length;
    picker.value = '1';
    picker.dispatchEvent(new Event('change'));
    seen.exampleChanges = arcs.innerHTML !== shown;
    document.querySelector('.viewer').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}));
    seen.keyboard = said.textContent;
  }
  seen.sliders = [...document.querySelectorAll('.slider')].map(slider => {
    const range = slider.querySelector('input[type=range]');
    if (!range) return null;
    const visible = () => [...slider.querySelectorAll('[data-step]')].filter(f => !f.hidden).map(f => f.dataset.step).join();
    const before = visible();
    range.value = 0; range.dispatchEvent(new Event('input'));
    return before !== visible();
  });
  const out = document.createElement('pre');
  out.id = 'seen'; out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>
"""


def numbers_of(value):
    if isinstance(value, bool):
        return set()
    if isinstance(value, (int, float)):
        return {float(value)}
    if isinstance(value, dict):
        return set().union(*map(numbers_of, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(numbers_of, value)) if value else set()
    return set()


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        base = pathlib.Path(cls.folder.name)
        cls.run_folder = base / "run"
        cls.sweep_folder = base / "sweep"
        run = lambda *words: subprocess.run([headlab, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        run("train", "offsets", "--heads", 4, "--steps", 80, "--out", cls.run_folder, "--svg")
        run("inspect", cls.run_folder)
        run("knockout", cls.run_folder)
        run("knockout", cls.run_folder, "--cumulative")
        run("prune", cls.run_folder, "--keep", 0.5)
        run("ablate", "offsets", "--heads", "1,4", "--seeds", 2, "--steps", 60, "--out", cls.sweep_folder)
        run("lifeline", cls.sweep_folder)
        cls.pages = [cls.run_folder / "report.html", cls.sweep_folder / "report.html"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def dom(self, page, width, *flags):
        profile = pathlib.Path(self.folder.name) / "profile"
        return subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             f"--window-size={width},1200", "--virtual-time-budget=5000", *flags, "--dump-dom", f"file://{page}"],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120).stdout

    def seen(self, page, width):
        text = page.read_text().replace("<style>", PROBE + "<style>", 1).replace("</body>", ASK + "</body>")
        probed = page.with_name(f"probed-{width}.html")
        probed.write_text(text)
        found = re.search(r'<pre id="seen">(.*?)</pre>', self.dom(probed, width), re.S)
        self.assertIsNotNone(found, "the page's scripts did not get to their end")
        return json.loads(html.unescape(found.group(1)))

    def test_works_on_a_wide_and_a_narrow_window(self):
        for page in self.pages:
            # Chromium's windows are at least 500 pixels wide; a frame of 390 stands for a telephone.
            for width in (1280, 500):
                with self.subTest(page=page.parent.name, width=width):
                    seen = self.seen(page, width)
                    self.assertEqual(seen["failures"], [])
                    self.assertEqual(seen["clipped"], [])
                    self.assertEqual(seen["unlabelled"], 0)
                    self.assertLessEqual(seen["page"], seen["window"])
                    self.assertGreater(seen["heads"], 0)
                    self.assertEqual(seen["ground"], "rgb(247,249,252)")
                    if seen["heads"] > 1:
                        self.assertTrue(seen["headChanges"])
                        self.assertEqual(seen["pressed"], 1)
                        self.assertGreater(seen["examples"], 1)
                        self.assertTrue(seen["exampleChanges"])
                        self.assertIn("Query 0", seen["keyboard"])
                    self.assertEqual(seen["sliders"], [True] if page.parent == self.sweep_folder else [])

    def test_fits_a_telephone(self):
        for page in self.pages:
            frame = page.with_name("telephone.html")
            text = page.read_text().replace("</body>", "<script>addEventListener('load', () => parent.postMessage("
                                            "[document.documentElement.scrollWidth, innerWidth], '*'))</script></body>")
            page.with_name("inside.html").write_text(text)
            frame.write_text("<script>addEventListener('message', e => { const p = document.createElement('pre'); p.id = 'seen';"
                             "p.textContent = JSON.stringify(e.data); document.body.append(p); })</script>"
                             "<iframe src='inside.html' style='width:390px;height:800px;border:0'></iframe>")
            found = re.search(r'<pre id="seen">(.*?)</pre>', self.dom(frame, 800, "--allow-file-access-from-files"))
            self.assertIsNotNone(found)
            inside, window = json.loads(found.group(1))
            self.assertLessEqual(inside, window)
            self.assertEqual(window, 390)

    def test_numbers_are_those_of_the_files(self):
        for page in self.pages:
            known = set()
            for file in page.parent.glob("*.json"):
                known |= numbers_of(json.loads(file.read_text()))
            metrics = page.parent / "metrics.jsonl"
            if metrics.exists():
                known |= numbers_of([json.loads(line) for line in metrics.read_text().splitlines()])
            values = [float(v) for v in re.findall(r'<data value="([^"]*)"', page.read_text())]
            self.assertGreater(len(values), 10)
            self.assertEqual([v for v in values if v not in known], [])

    def test_shows_the_smaller_model(self):
        page = (self.run_folder / "report.html").read_text()
        section = re.search(r'<section id="prune">(.*?)</section>', page, re.S).group(1)
        shown = {float(v) for v in re.findall(r'<data value="([^"]*)"', section)}
        file = json.loads((self.run_folder / "prune.json").read_text())
        told = [file["times_as_fast"], file["loss_added"], file["interval"], *file["gates"].values(), *file["importance"].values()]
        for what in ("heads", "parameters", "accuracy", "loss", "seconds"):
            told += file[what].values()
        self.assertEqual([v for v in told if v not in shown], [])
        self.assertEqual(section.count("<td>yes</td>"), len(file["kept"]))

    def test_says_it_all_without_scripts(self):
        for page in self.pages:
            text = re.sub(r"<script.*?</script>", "", page.read_text(), flags=re.S)
            self.assertIn("the strongest key, and its weight", text)
            self.assertGreaterEqual(text.count("<table"), 2)

    def test_needs_nothing_else(self):
        for page in self.pages:
            text = page.read_text()
            self.assertLessEqual(len(text.encode()), 2_000_000)
            self.assertEqual(re.findall(r'(?:src|href)="(?!#)[^"]*"', text), [])
            self.assertNotIn("@import", text)

    def test_pictures_are_files_too(self):
        pictures = list(self.run_folder.glob("*.svg"))
        self.assertGreater(len(pictures), 0)
        for picture in pictures:
            self.assertIn("<style>", picture.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
