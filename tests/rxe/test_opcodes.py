# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each opcode and error of RC, UC and UD (opcodes.c) between our engine and the kernel's rxe: both ends see what two QPs of rxe see."""
import pytest

from conftest import BUILD, LONG, end, gid_of_rxe, run_at

PROGRAM = [BUILD / "tests/rxe/opcodes"]

# Where rxe deviates from the specification, in Linux 6.1: what our engine does instead, by row and end.
OURS = {
    # rxe does not tell programs that a receive has invalidated a key, nor which one.
    ("RC SEND_WITH_INV", "responder"):
        "[100 ok opcode 128, 20 bytes flags 0] [101 ok opcode 128, 3000 bytes flags 8 invalidated the window] state 3",
    ("RC WRITE by an invalidated window", "responder"): "[100 ok opcode 128, 3000 bytes flags 8 invalidated the window] state 6",
    # rxe ends the receive of a refused request with the requester's status, which tells of the other end's memory.
    ("RC WRITE_WITH_IMM, unknown key", "responder"): "state 6 [100 LOC_ACCESS]",
    # For a message longer than its receive rxe sends the NAK for an error of its own instead of the one for an invalid request.
    ("RC SEND, receive too short", "responder"): "state 6 [100 LOC_LEN]",
    # rxe reports each local key that it refuses as an error of the QP, except for a READ's.
    ("RC SEND, receive of a bad key", "responder"): "state 6 [100 LOC_PROT]",
    ("RC SEND, local key unknown", "requester"): "[0 LOC_PROT] [1 WR_FLUSH] state 6",
    # The same, and rxe has no state SQE, to which a failed send takes a QP of UC or UD.
    ("UC SEND, local key unknown", "requester"): "[0 LOC_PROT] [1 WR_FLUSH] state 5",
    # rxe sends nothing, and reports success.
    ("UD SEND, longer than the MTU", "requester"): "[0 LOC_LEN] state 5",
}
# What the peer then sees.
WITH_OUR_RESPONDER = {("RC SEND, receive too short", "requester"): "[0 REM_INV_REQ] [1 WR_FLUSH] state 6"}
# The stock provider of rxe does not post these, so two QPs of rxe cannot tell.
MISALIGNED = {(f"RC {opcode}, misaligned", end_of_row): said for opcode in ("FETCH_AND_ADD", "CMP_AND_SWP")
              for end_of_row, said in (("requester", "[0 REM_INV_REQ] [1 WR_FLUSH] state 6"), ("responder", "state 6 [100 WR_FLUSH]"))}


def results(text):
    """The results by row and end; a line is as `RC READ: requester: [0 ok opcode 2, 999 bytes] state 3`."""
    found = {}
    for line in text.splitlines():
        row, end_of_row, said = line.split(":", 2)
        found[row, end_of_row.strip()] = said.strip()
    return found


def rxe_end(version, options=""):
    return end([], f"-d wire_rxe -g {gid_of_rxe(version)} {options}")


def our_end(version, persona="rxe", options=""):
    device, gid = "rxe0" if persona == "rxe" else "hfi1_0", 0 if version == 4 else 1
    return end(run_at(1, persona, ["--explain", "off"]), f"-d {device} -g {gid} {options}")


@pytest.fixture(name="of_rxe", scope="module", params=[4, 6] if LONG else [4], ids="ipv{}".format)
def fixture_of_rxe(net, request):
    """The version of IP, and the results between two QPs of rxe."""
    said = net.pair(rxe_end(request.param), rxe_end(request.param), PROGRAM, server_end=0, client_end=0)
    return request.param, results(said)


def expected(of_rxe, ours):
    of_ours = {key: said for key, said in OURS.items() if key[1] == ours}
    return {**of_rxe, **of_ours, **(WITH_OUR_RESPONDER if ours == "responder" else {})}


def test_our_requests_end_as_those_of_rxe(net, of_rxe):
    version, wanted = of_rxe
    assert results(net.pair(rxe_end(version), our_end(version), PROGRAM, server_end=0)) == expected(wanted, "requester")


def test_requests_of_rxe_end_as_at_rxe(net, of_rxe):
    version, wanted = of_rxe
    assert results(net.pair(our_end(version), rxe_end(version), PROGRAM, server_end=1)) == expected(wanted, "responder")


def test_misaligned_atomics_and_requests_of_persona_hfi1_end_as_those_of_rxe(net, of_rxe):
    version, wanted = of_rxe
    said = net.pair(rxe_end(version, "-m"), our_end(version, "hfi1", "-m"), PROGRAM, server_end=0)
    assert results(said) == {**expected(wanted, "requester"), **MISALIGNED}
