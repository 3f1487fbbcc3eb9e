"""The page of a plan: a browser opens it, runs its script, and draws what the plan says.

page.py [TEST...]
"""

import html.parser
import json
import re
import sys
import urllib.parse

from harness import run_tests

GPT = ("gpt2", "--layers", 2, "--width", 32, "--heads", 2, "--vocab", 96, "--seq", 32, "--context",
       32, "--batch", 2)
VOID = {"meta", "input", "link", "br", "i"}


class Drawn(html.parser.HTMLParser):
    """The elements that a script has left, with the texts of those that have an id."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        if tag in VOID or not any(tag == each for each, _ in self.open):
            return
        while self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data

    def of_class(self, name):
        return [attributes for _, attributes in self.elements
                if name in attributes.get("class", "").split()]


def write_page(bench, *options):
    bench.model(*GPT)
    result = bench.sgtc("model.onnx", "--emit", f"html={bench.path('plan.html')}", "--emit",
                        f"plan-json={bench.path('plan.json')}", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(bench.path("plan.json").read_text())


def open_page(bench, **selected):
    """The page once its script has run, which must not have failed."""
    address = f"file://{bench.path('plan.html')}#{urllib.parse.urlencode(selected)}"
    result = bench.run("chromium", "--headless", "--no-sandbox", "--disable-gpu",
                       "--disable-dev-shm-usage", f"--user-data-dir={bench.path('browser')}",
                       "--enable-logging=stderr", "--window-size=1500,1200",
                       "--virtual-time-budget=10000", "--dump-dom", address)
    assert result.returncode == 0, result.stderr
    complaints = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, complaints
    return Drawn(result.stdout)


def panel(page):
    """The explanation without its title, which is that of the node."""
    return page.texts["explanation"]


def test_everything_of_a_step_is_drawn(bench):
    plan = write_page(bench, "--mesh", "2x2", "--micro-batches", 3)[0]
    page = open_page(bench, position=1)
    entries = page.of_class("entry")
    for p, position in enumerate(plan["positions"]):
        drawn = [int(each["data-entry"]) for each in entries if each["data-position"] == str(p)]
        assert sorted(drawn) == list(range(len(position["schedules"]["train"])))
        assert all(float(each["width"]) > 0 for each in entries)
    buffers = plan["positions"][1]["buffers"]
    drawn = {buffers[int(each["data-buffer"])]["name"] for each in page.of_class("buffer")}
    states = {state["buffer"] for state in plan["states"] if state["position"] == 1}
    assert states <= drawn and any(name not in states for name in drawn), drawn
    kinds = {each["data-kind"] for each in page.of_class("kind")}
    assert {"parameters", "moments", "gradients", "kept for the backward phase"} <= kinds, kinds
    assert "pp=2,dp=2,tp=1, 4 ranks" in page.texts["subtitle"], page.texts["subtitle"]
    assert page.texts["per-position"].count("MiB") + page.texts["per-position"].count("KiB") == 4


def test_the_peak_is_that_of_the_plan(bench):
    write_page(bench)
    text = bench.sgtc("model.onnx", "--emit-plan").stdout
    peak = re.search(r"peak of live buffers in train ([0-9.]+ .iB), in (\w+)", text)
    page = open_page(bench)
    assert f"Live at the peak of position 0: {peak.group(1)}" in page.texts["live"]
    assert peak.group(2) + " of micro-batch 0" in page.texts["live"]
    assert re.search(r"parameters[0-9.]+ KiB.*h\.0[0-9.]+ KiB", page.texts["live"])


def test_explanations_are_those_of_the_tool(bench):
    plan = write_page(bench, "--mesh", "2x1", "--recompute", "full")[0]
    for name in ("h.0.mlp.c_fc.matmul", "wte.weight", plan["feeds"][0]["name"]):
        said = bench.sgtc("explain", bench.path("plan.json"), name)
        assert said.returncode == 0, said.stderr
        expected = said.stdout.split("\n", 1)[1].strip()
        assert panel(open_page(bench, node=name)) == name + expected
    task = next(task for task in plan["positions"][1]["tasks"] if task["kind"] == "receive")
    text = panel(open_page(bench, position=1, task=task["name"]))
    assert f"receive on {task['communicator']} from position 0" in text, text
    assert "posted at" in text, text
    page = open_page(bench, position=0, task="forward")
    calls = [element for element in page.elements if "data-call" in element[1]]
    forward = next(task for task in plan["positions"][0]["tasks"] if task["name"] == "forward")
    assert len(calls) == len(forward["calls"]) > 5


def test_plans_share_a_page(bench):
    plans = write_page(bench, "--mesh", "1x1,2x1")
    for number, plan in enumerate(plans):
        page = open_page(bench, plan=number)
        assert len(page.of_class("entry")) == sum(
            len(position["schedules"]["train"]) for position in plan["positions"])
        assert page.texts["plan"].count("pp=") == 2


def test_the_page_needs_nothing_else(bench):
    write_page(bench)
    text = bench.path("plan.html").read_text()
    assert not re.search(r"\b(src|href)\s*=|@import|url\((?!#)", text.replace("url(#${", ""))
    assert set(re.findall(r"https?://[^\"'` ]+", text)) == {"http://www.w3.org/2000/svg"}


if __name__ == "__main__":
    run_tests(dict(globals()), sys.argv[1:])
