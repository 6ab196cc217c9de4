# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each example does what its own test says, on a device with the plug-in of this build."""
import os
import subprocess
import tempfile

import pytest

from conftest import BUILD, ROOT, STUCK, UVERBSCTL, client, on_device, plugin, said

EXAMPLES = ["hello", "counter", "kv", "persona-example", "filter-example", "skeleton"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_passes_its_own_test(name):
    more = [client(name)] if client(name).exists() else []
    print(said("sh", ROOT / "plugins" / name / "test.sh", UVERBSCTL, plugin(name), *more))


def test_examples_work_together_on_one_device():
    options = [a for name in EXAMPLES[1:] for a in ("--plugin", plugin(name))]
    out = on_device("hello", "sh", "-ec", f"{client('counter')} 0; {UVERBSCTL} call HELLO SAY --number 4", options=options)
    assert "event 0x10000 of 77" in out and "doubled=8" in out


def test_option_that_is_wrong_is_told_before_the_program_starts():
    out = on_device("counter", "echo", "started", values=["initial=ten"], status=125)
    assert "initial" in out and "ten" in out and "started" not in out


def test_a_plugin_is_not_unloaded_while_a_device_has_its_filter():
    script = f"{UVERBSCTL} plugin unload filter-example 2>&1; {UVERBSCTL} filter remove quota; {UVERBSCTL} plugin unload filter-example"
    out = on_device("filter-example", "sh", "-c", script, options=["--filter", "quota"])
    assert "uses a filter of plug-in 'filter-example'" in out and "no filters" in out, out
    out = on_device("filter-example", "sh", "-c", f"{UVERBSCTL} filter add quota; {UVERBSCTL} plugin reload filter-example; "
                    f"{UVERBSCTL} call PD ALLOC", options=["--filter", "quota:pds=0"], status=1)
    assert "generation 2" in out and "EDQUOT" in out, out


@pytest.mark.parametrize("case", ["header", "header_later", "slot", "key", "unmapped", "in_use", "query", "reader", "exit", "torn"])
def test_kv_against_a_hostile_owner(case):
    done = subprocess.run([UVERBSCTL, "run", "--plugin", plugin("kv"), "--", BUILD / "tests/plugin/examples/kv_hostile", case], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


PYTHON_XRC = """
import errno, os, uverbs
with uverbs.open() as dev:
    xrcd = dev.write.OPEN_XRCD(oflags=os.O_CREAT)
    qp = dev.QP.CMD_CREATE_QP(pd_handle=xrcd, qp_type="XRC_TGT")
    opened = dev.write.OPEN_QP(pd_handle=xrcd, qpn=qp.qpn, qp_type="XRC_TGT")
    seen = [dev.ACME_LIMITS.QUERY().qps]
    try:
        dev.write.OPEN_QP(pd_handle=xrcd, qpn=qp.qpn, qp_type="XRC_TGT")
    except OSError as e:
        seen.append(errno.errorcode[e.errno])
    for handle in opened, qp:
        dev.write.DESTROY_QP(qp_handle=handle)
    print(*seen, dev.ACME_LIMITS.QUERY().qps)
"""


def test_persona_example_counts_the_qp_handles_of_open_qp():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "contrib/python")}
    out = on_device("persona-example", "/usr/bin/python3", "-c", PYTHON_XRC, values=["max-qps=2"], options=["--persona", "acme"],
                    env=env)
    assert out.splitlines()[-1] == "2 EAGAIN 0", out


PYTHON_READER = """
import os, subprocess, uverbs
owner = subprocess.Popen([os.environ["CLIENT"], "owner"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
number, key = map(int, owner.stdout.readline().split())
owner.stdin.write("set colour green\\n")
owner.stdin.flush()
assert owner.stdout.readline() == "0\\n"
with uverbs.open() as dev:
    r = dev.KV_STORE.GET(number=number, store_key=key, key=b"colour", resp_value=64)
    print("by key", bytes(r.resp_value)[:r.resp_length])
    with dev.KV_READER.OPEN(number=number, store_key=key) as reader:
        r = dev.KV_STORE.GET(reader=reader, key=b"colour", resp_value=64)
        print("by reader", bytes(r.resp_value)[:r.resp_length])
"""


def test_kv_from_python():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "contrib/python"), "CLIENT": str(client("kv"))}
    out = on_device("kv", "/usr/bin/python3", "-c", PYTHON_READER, env=env)
    assert "by key b'green'\nby reader b'green'\n" in out, out


def test_kv_get_in_flight_at_the_end_of_the_store_delivers_nothing(tmp_path):
    """The reader is in a run of its own, whose thread the owner's memory holds up; the owner's calls go on meanwhile."""
    run = [UVERBSCTL, "run", "--join", f"kv-{tmp_path.name}", "--plugin", plugin("kv"), "--"]
    with subprocess.Popen([*run, BUILD / "tests/plugin/examples/kv_hostile", "slow_owner"], text=True, stdout=subprocess.PIPE) as owner:
        line = owner.stdout.readline()
        if not line and owner.wait(STUCK) == 77:
            assert os.geteuid(), "root has userfaultfd"
            pytest.skip("no userfaultfd for this user")
        number, key = line.split()
        assert said(*run[:4], "--", client("kv"), "get", number, key, "k", 20000, status=1).splitlines()[-1] == "EACCES"
        assert owner.wait(STUCK) == 0


def test_kv_stores_of_many_owners_have_numbers_and_keys_of_their_own():
    script = "for i in 1 2 3 4 5 6 7 8; do echo | " + str(client("kv")) + " owner; done"
    lines = [line.split() for line in on_device("kv", "sh", "-c", script).splitlines() if line[0].isdigit()]
    assert len({n for n, _ in lines}) == 8 and len({k for _, k in lines}) == 8


def test_a_device_works_after_the_plugin_of_its_persona_is_reloaded():
    qp = ("pd = PD ALLOC\ncq = CQ CREATE --cqe 4\nqp = QP CREATE --pd_handle \\$pd --send_cq_handle \\$cq --recv_cq_handle \\$cq "
          "--type UD --cap max_send_wr=1\n")
    script = f"cat >s <<END\n{qp}END\n{UVERBSCTL} call -f s; {UVERBSCTL} plugin reload persona-example; {UVERBSCTL} call -f s"
    with tempfile.TemporaryDirectory() as folder:
        out = on_device("persona-example", "sh", "-ec", script, options=["--persona", "acme"], cwd=folder)
    assert out.count("resp_acme_left=999") == 2 and "generation 2" in out, out
