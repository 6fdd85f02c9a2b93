"""Garbage that grows until Python collects it, with the circle and the statement that closes it."""

from __future__ import annotations

import pytest

from tests.support.growth_rig import GrowthRig, holder_of

pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def test_objects_that_hold_themselves_are_garbage(rig: GrowthRig) -> None:
    report = rig.run("""
        class Cycle:
            def __init__(self, t):
                self.t = t
        def main():
            for _ in STEPS:
                node = Cycle(torch.empty(64, 64))
                node.me = node
                train()
        main()
    """)
    (group,) = report["groups"]
    holder = holder_of(report)
    assert (holder["kind"], holder["chain"]) == ("garbage", ["Cycle", "Cycle.me", "Cycle.t"])
    assert holder["stored_at"]["line"] == rig.line("node.me = node")
    assert 0 < group["garbage_bytes"] <= group["bytes"]
    assert report["garbage"]["bytes"] == group["garbage_bytes"]
    assert report["garbage"]["cycle"] == holder["chain"]


def test_a_module_that_stores_its_own_method_is_garbage(rig: GrowthRig) -> None:
    report = rig.run("""
        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(64, 64)
                self.which = self.foo
            def foo(self):
                pass
        def main():
            for _ in STEPS:
                net = M()
                del net
                train()
        main()
    """)
    holder = holder_of(report)
    assert holder["kind"] == "garbage"
    assert holder["chain"][:3] == ["M", "M.which", "method M.foo"]
    assert holder["stored_at"]["line"] == rig.line("self.which = ")


def test_a_checkpoint_whose_closure_reaches_its_own_output_is_garbage(rig: GrowthRig) -> None:
    report = rig.run("""
        from torch.utils.checkpoint import checkpoint
        def block(x):
            d = {"pad": x * 0}
            def inner(t):
                d
                return t * 1.0
            out = checkpoint(inner, x, use_reentrant=True)
            d["x"] = out
            return out
        def main():
            for _ in STEPS:
                block(model(torch.ones(64, 64))).sum().backward()
                train()
        main()
    """)
    for group in report["groups"]:
        holder = group["holders"][0]
        assert holder["kind"] == "garbage"
        assert any("run_function" in piece for piece in holder["chain"])
        assert holder["stored_at"]["line"] == rig.line('d["x"] = out')


def test_a_function_of_autograd_that_owns_its_output(rig: GrowthRig) -> None:
    report = rig.run("""
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, fcn, y, p):
                ctx.fcn = fcn
                return fcn(y)
            @staticmethod
            def backward(ctx, g):
                return None, g, None
        class Solver:
            def __init__(self, a):
                self.a = a
                self.sol = F.apply(self.rhs, torch.ones_like(a), a)
            def rhs(self, y):
                return y * 2
        def main():
            a = torch.ones(64, 64, requires_grad=True)
            for _ in STEPS:
                Solver(a)
                train()
        main()
    """)
    holder = holder_of(report)
    assert holder["kind"] == "garbage"
    assert {"FBackward.fcn", "Solver.sol"} <= set(holder["chain"])
    assert holder["stored_at"]["line"] in (rig.line("ctx.fcn = fcn"), rig.line("self.sol = "))
