"""What grows in jobs of every kind, by line, by holder, and by the statement that stores it."""

from __future__ import annotations

import pytest

from tests.support.growth_rig import GrowthRig, holder_of, line_of

pytest.importorskip("torch")

pytestmark = pytest.mark.torch

KIB = 1 << 10


def test_a_list_in_a_function(rig: GrowthRig) -> None:
    report = rig.run("""
        def main():
            kept = []
            for _ in STEPS:
                kept.append(torch.ones(64, 64))
                train()
        main()
    """)
    (group,) = report["groups"]
    assert line_of(group) == rig.line("kept.append")
    assert group["bytes_at_looks"] == [16 * KIB * count for count in group["counts_at_looks"]]
    assert group["count"] == 3
    assert group["tensors"] == ["float32[64, 64]"]
    assert not group["in_backward"]
    holder = holder_of(report)
    assert (holder["kind"], holder["is_growing"], holder["tensors"]) == ("local", True, 3)
    assert holder["chain"][0] == "kept"
    assert holder["frame"]["function"] == "main"
    assert holder["stored_at"]["line"] == rig.line("kept.append")
    assert (report["complete"], report["notes"]) == (True, [])
    assert len(report["steps"]) == len(report["live_bytes_at_looks"]) == 4


def test_a_dictionary_of_lists_that_a_class_has_and_an_evaluation_fills(rig: GrowthRig) -> None:
    report = rig.run("""
        class T:
            results = collections.defaultdict(list)
            def evaluate(self):
                for key in ("acc", "pck"):
                    pred = torch.ones(64, 64)
                    self.results[key].append(pred.detach().clone())
        def main():
            t = T()
            for number in STEPS:
                if number % 5 == 0:
                    t.evaluate()
                train()
        main()
    """)
    (group,) = report["groups"]
    # The looks waited for the evaluations, which are what makes it grow.
    assert report["steps"][-1] - report["steps"][-2] == 5
    assert line_of(group) == rig.line("self.results[key].append")
    names = [holder["chain"][:2] for holder in group["holders"]]
    assert sorted(names) == [["T.results", "['acc']"], ["T.results", "['pck']"]]
    assert holder_of(report)["stored_at"]["line"] == rig.line("self.results[key].append")


def test_the_state_of_a_metric_and_the_line_that_adds_to_it(rig: GrowthRig) -> None:
    report = rig.run("""
        class Metric:
            def __init__(self):
                self.preds, self.target = [], []
            def update(self, p, t):
                self.preds.append(p.detach())
                self.target.append(t)
        def main():
            metric = Metric()
            for _ in STEPS:
                metric.update(torch.ones(64, 64), torch.ones(32, 32))
                train()
        main()
    """)
    holders = {holder["chain"][0]: holder for holder in report["groups"][0]["holders"]}
    assert holders.keys() == {"Metric.preds", "Metric.target"}
    # A metric keeps what it is given: the line that gives it can be changed.
    for holder in holders.values():
        assert holder["stored_at"]["line"] == rig.line("metric.update(")


def test_a_cache_of_a_method_holds_every_instance(rig: GrowthRig) -> None:
    report = rig.run("""
        class PosEnc(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("table", torch.ones(64, 64))
            @functools.lru_cache()
            def grid(self, h, w):
                return torch.ones(h, w)
        def main():
            for _ in STEPS:
                net = PosEnc()
                net.grid(2, 2)
                train()
                del net
        main()
    """)
    assert line_of(report["groups"][0]) == rig.line('self.register_buffer("table"')
    holder = holder_of(report)
    assert (holder["kind"], holder["is_growing"]) == ("lru_cache", True)
    assert holder["chain"][0] == "PosEnc.grid"
    assert holder["chain"][1].startswith("lru_cache(maxsize=128) of ")
    assert holder["frame"]["line"] == rig.line("@functools.lru_cache")


def test_optimizers_in_a_list_hold_parameters_and_moments(rig: GrowthRig) -> None:
    report = rig.run("""
        class Session:
            opts = []
            def prepare(self, m, o):
                self.opts.append(o)
                return m, o
        def main():
            session = Session()
            for _ in STEPS:
                net = torch.nn.Linear(128, 128)
                net, own = session.prepare(net, torch.optim.Adam(net.parameters()))
                net(torch.ones(4, 128)).sum().backward()
                own.step()
                own.zero_grad()
                del net, own
                train()
        main()
    """)
    for group in report["groups"]:
        holder = group["holders"][0]
        assert holder["chain"][0] == "Session.opts", holder
        assert holder["stored_at"]["line"] == rig.line("self.opts.append(o)")
    assert len(report["groups"]) >= 3  # weights and both moments


def test_history_on_an_accumulator(rig: GrowthRig) -> None:
    report = rig.run("""
        def main():
            total = torch.tensor(0.0)
            feats = torch.ones(128, 128, requires_grad=True)
            for _ in STEPS:
                train()
                aux = (feats.sigmoid() * 2).mean()
                total = total + 0 * aux
        main()
    """)
    assert line_of(report["groups"][0]) == rig.line("aux = ")
    holder = holder_of(report)
    assert (holder["kind"], holder["is_growing"]) == ("autograd_graph", True)
    assert holder["chain"][0] == "total"
    assert holder["chain"][-1].startswith("graph of ")
    assert holder["stored_at"]["line"] == rig.line("total = total")


def test_losses_with_history_in_a_log(rig: GrowthRig) -> None:
    report = rig.run("""
        class Log:
            rows = []
            def log(self, values):
                self.rows.append(values)
        def main():
            log = Log()
            big = torch.ones(128, 128, requires_grad=True)
            for _ in STEPS:
                log.log({"loss": (big.exp() * 2).sum()})
                train()
        main()
    """)
    holders = report["groups"][0]["holders"]
    assert {holder["kind"] for holder in holders} >= {"autograd_graph"}
    assert all(holder["chain"][0] == "Log.rows" for holder in holders)
    assert holders[0]["stored_at"]["line"] == rig.line("self.rows.append")


def test_gradients_of_models_that_are_kept(rig: GrowthRig) -> None:
    report = rig.run("""
        def main():
            old = []
            for _ in STEPS:
                net = torch.nn.Linear(64, 64, bias=False)
                net(torch.ones(4, 64)).sum().backward()
                old.append(net)
                train()
        main()
    """)
    by_backward = {group["in_backward"]: group for group in report["groups"]}
    assert by_backward[True]["holders"][0]["chain"][-1] == ".grad"
    for group in by_backward.values():
        assert group["holders"][0]["chain"][0] == "old"


def test_exceptions_in_a_list_hold_the_frames_that_failed(rig: GrowthRig) -> None:
    report = rig.run("""
        def fails(number):
            big = torch.ones(64, 64)
            raise ValueError(number)
        def main():
            errors = []
            for number in STEPS:
                try:
                    fails(number)
                except ValueError as error:
                    errors.append(error)
                train()
        main()
    """)
    holder = holder_of(report)
    assert holder["kind"] == "exception"
    assert holder["chain"][0] == "errors"
    assert holder["chain"][-2:] == ["frame fails", "big"]
    assert holder["frame"]["line"] == rig.line("raise ValueError")
    assert holder["stored_at"]["line"] == rig.line("errors.append")


def test_hooks_that_are_never_removed(rig: GrowthRig) -> None:
    report = rig.run("""
        class Cam:
            def __init__(self, m):
                self.seen = torch.ones(64, 64)
                m.register_forward_hook(lambda m, i, o: setattr(self, "g", o.detach()))
        def main():
            for _ in STEPS:
                cam = Cam(model)
                del cam
                train()
        main()
    """)
    holder = holder_of(report)
    assert (holder["kind"], holder["is_growing"]) == ("hook", True)
    assert holder["chain"][0] == "hook on Linear"
    assert holder["frame"]["line"] == rig.line("register_forward_hook")


def test_models_and_optimizers_that_nobody_steps_any_more_are_told(rig: GrowthRig) -> None:
    rig.first = 60
    report = rig.run("""
        def release(m, o):
            del m, o
        def main():
            model1 = torch.nn.Linear(600, 600)
            opt1 = torch.optim.Adam(model1.parameters())
            model1(torch.ones(4, 600)).sum().backward()
            opt1.step()
            step(opt1)
            release(model1, opt1)
            for _ in STEPS:
                train()
        main()
    """)
    held = {group["category"]: group for group in report["held"]}
    assert held["parameters"]["holders"][0]["chain"] == ["model1"]
    assert held["gradients"]["holders"][0]["chain"] == ["model1"]
    assert held["optimizer_state"]["holders"][0]["chain"] == ["opt1"]
    made = rig.line("model1 = torch.nn.Linear")
    assert held["parameters"]["holders"][0]["stored_at"]["line"] == made
    assert held["parameters"]["holders"][0]["frame"]["function"] == "main"


def test_a_hook_on_a_graph_that_only_c_plus_plus_has(rig: GrowthRig) -> None:
    report = rig.run("""
        class Cam:
            pass
        def watch(cam, keep):
            x = torch.ones(4, requires_grad=True) * 2
            def seen(grad):
                cam.g = grad
            cam.big = torch.ones(64, 64)
            x.grad_fn.register_hook(lambda gi, go: seen(go[0]))
            keep.append((x * 2).grad_fn)
        def main():
            graphs = []
            for _ in STEPS:
                watch(Cam(), graphs)
                train()
        main()
    """)
    holder = holder_of(report)
    assert (holder["kind"], holder["chain"][0]) == ("hook", "Cam.big")
    assert holder["frame"]["function"] in ("seen", "<lambda>")


def test_what_the_last_error_of_a_shell_holds_is_told(rig: GrowthRig) -> None:
    report = rig.run("""
        import code, io, sys
        def cell():
            big = torch.ones(600, 600)
            raise ValueError("in a cell")
        sys.stderr, was = io.StringIO(), sys.stderr
        code.InteractiveInterpreter({"cell": cell}).runsource("cell()")
        sys.stderr = was
        for _ in STEPS:
            train()
        del sys.last_traceback, sys.last_value, sys.last_type
        sys.__dict__.pop("last_exc", None)
    """)
    holder = report["held"][0]["holders"][0]
    assert holder["kind"] == "exception"
    assert holder["chain"][0].startswith("sys.last_")
    assert holder["chain"][-2:] == ["frame cell", "big"]
