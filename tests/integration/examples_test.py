"""Runs the example programs and checks the figures that they print. Usage: examples_test.py FOLDER_OF_PROGRAMS [TEST …]"""
import json
import re
import subprocess
import sys
import tempfile
import unittest

programs = sys.argv.pop(1)


def run(name, *arguments):
    done = subprocess.run([f"{programs}/{name}", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{name} ended with {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


def figure(text, pattern):
    found = re.search(pattern, text)
    if not found:
        raise AssertionError(f"no '{pattern}' in:\n{text}")
    return float(found.group(1))


class Examples(unittest.TestCase):
    def test_attention_by_hand(self):
        text = run("attention_by_hand")
        for shape in ("[6, 512]", "[8, 6, 64]", "[8, 6, 6]"):
            self.assertIn(shape, text)
        self.assertIn("4 · 512² = 1048576 without biases", text)
        self.assertIn("[1, 10, 512] → [1, 10, 512]", text)
        self.assertEqual(figure(text, r"above the diagonal add up to (\S+) \(exactly\)"), 0)
        self.assertLess(figure(text, r"rows to 1 within (\S+)"), 1e-6)
        self.assertLess(figure(text, r"largest difference (\S+)"), 1e-5)
        self.assertIn("changes 64 of 512 columns without W_O, 512 with it", text)
        self.assertIn("give 256 columns, W_O brings them to [1, 6, 512]", text)
        for head in range(3):
            row = re.search(rf"head {head}\s+((?:\d\.\d+\s+){{6}})", text).group(1).split()
            self.assertAlmostEqual(sum(map(float, row)), 1, delta=0.004)

    def test_train_from_scratch(self):
        text = run("train_from_scratch")
        self.assertGreaterEqual(figure(text, r"accuracy (\S+)"), 0.9)
        self.assertLess(figure(text, r"step 300\s+loss (\S+)"), figure(text, r"step  50\s+loss (\S+)"))

    def test_custom_layer(self):
        text = run("custom_layer")
        self.assertLessEqual(figure(text, r"plain keys\s+(\S+)"), 0.15)
        self.assertGreaterEqual(figure(text, r"smeared keys\s+(\S+)"), 0.97)

        text = run("custom_layer", "check-layer", "smeared")
        self.assertRegex(text, r"gradient of share\s+pass")
        self.assertRegex(text, r"save and load\s+pass")
        self.assertIn("The layer smeared can be trained, saved and looked at", text)

    def test_gated_layer(self):
        text = run("gated_layer", "check-layer", "gated")
        for check in ("gradient of input 0", "gradient of gate.weight", "save and load", "threads", "memory"):
            self.assertRegex(text, rf"{check}\s+pass")
        self.assertIn("gated", run("gated_layer", "check-layer"))

    def test_custom_detector(self):
        text = run("custom_detector")
        heads = re.findall(r"head (\S+)\s+(\S+)\s+(\S+)(.*)", text)
        found = [head for head, score, null, note in heads if "look there" in note]
        self.assertEqual(len(heads), 8)
        self.assertGreater(len(found), 0)
        self.assertTrue(all(head.startswith("1.") for head in found))
        for head, score, null, note in heads:
            self.assertEqual("look there" in note, float(score) > float(null) + 0.3)

    def test_custom_intervention(self):
        text = run("custom_intervention")
        self.assertGreaterEqual(figure(text, r"intact\s+(\S+)"), 0.95)
        self.assertLess(figure(text, r"its own question\s+(\S+)"), 0.3)
        self.assertGreaterEqual(figure(text, r"the other seven\s+(\S+)"), 0.9)

    def test_score_function(self):
        text = run("score_function")
        self.assertIn("attention_path(): composite: the layer has its own score function", text)
        self.assertLess(figure(text, r"step 400\s+loss (\S+)"), 0.05)
        self.assertGreater(figure(text, r"0.1 at first: (\S+)"), 0.5)

    def test_custom_task(self):
        with tempfile.TemporaryDirectory() as folder:
            trained = json.loads(run("custom_task", "train", "marked", "--out", f"{folder}/run", "--json"))
            self.assertGreaterEqual(trained["accuracy"], 0.95)
            heads = json.loads(run("custom_task", "inspect", f"{folder}/run", "--json"))["heads"]
            self.assertEqual([t["name"] for t in heads[0]["targets"]], ["marked"])
        self.assertIn("headlab ablate", run("custom_task", "ablate", "--help"))
        self.assertIn("marked", run("custom_task", "tasks"))


if __name__ == "__main__":
    unittest.main()
