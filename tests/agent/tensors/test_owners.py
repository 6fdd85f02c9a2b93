from __future__ import annotations

from vramscope.tensors.category import NONE, OPTIMIZER_STATE, PARAMETERS
from vramscope.tensors.owners import MAX_NAME, Owned, Owners


def owners() -> Owners:
    found = [
        Owned(4096, 1000, OPTIMIZER_STATE, "exp_avg of weight"),
        Owned(1024, 512, PARAMETERS, "weight"),
    ]
    return Owners(found, step=7, time_ns=8)


def test_an_address_within_a_storage_has_its_owner() -> None:
    found = owners()
    assert found.category_of(1024) == (PARAMETERS, "weight")
    assert found.category_of(1535) == (PARAMETERS, "weight")
    assert found.category_of(4096 + 999) == (OPTIMIZER_STATE, "exp_avg of weight")


def test_an_address_beside_all_storages_has_none() -> None:
    found = owners()
    for address in (0, 1023, 1536, 4095, 4096 + 1000, 1 << 60):
        assert found.category_of(address) == (NONE, "")
    assert Owners([], step=0, time_ns=0).category_of(5) == (NONE, "")


def test_storages_lie_in_the_order_of_their_addresses() -> None:
    found = owners()
    assert len(found) == 2
    assert list(found.addresses) == [1024, 4096]
    assert list(found.ends) == [1536, 5096]
    assert found.codes == bytes((PARAMETERS, OPTIMIZER_STATE))
    assert (found.step, found.time_ns) == (7, 8)


def test_addresses_of_a_device_fit_and_names_have_a_bound() -> None:
    address = (1 << 47) + 512
    found = Owners([Owned(address, 1 << 40, PARAMETERS, "x" * 1000)], step=0, time_ns=0)
    assert found.category_of(address + 1) == (PARAMETERS, "x" * MAX_NAME)
