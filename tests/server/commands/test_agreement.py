from __future__ import annotations

from vramscope_protocol.messages import Decision
from vramscope_server.commands.agreement import Agreement, agreement_from_dict


def test_there_is_nothing_to_tell_before_it_is_decided() -> None:
    agreement = Agreement()
    assert agreement.message("c1") is None
    agreement.run = False  # nobody was asked: nobody has to be told
    assert agreement.message("c1") is None
    agreement = Agreement(at_step=7)
    assert (agreement.message("c1"), agreement.decision) == (None, None)
    agreement.run = True
    assert agreement.message("c1") == Decision("c1", 7, run=True)


def test_it_survives_the_way_through_the_store() -> None:
    for run, word in ((None, None), (True, "run"), (False, "drop")):
        agreement = Agreement(9, run, "Rank 1 refused.", 5)
        assert agreement.as_dict()["decision"] == word
        assert agreement_from_dict(agreement.as_dict()) == agreement
