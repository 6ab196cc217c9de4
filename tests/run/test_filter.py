# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Filters of a run: stock programs meet the errors that their users asked for."""
import json
import pathlib
import re
import time

import pytest

import perftest
from conftest import STUCK, UVERBSCTL


def filtered(*filters):
    return [word for f in filters for word in ("--filter", f)]


def pair(run, persona, filters, program, *args, limit=STUCK / 2):
    """Runs server and client. Returns what both wrote, and the log; the client's status is in the first line."""
    gid = () if persona == "hfi1" else ("-x" if program.startswith("ib_") else "-g", "0")

    def attempt():
        return run(UVERBSCTL, "pair", "--limit", str(limit), program, *args, *gid,
                   options=["--persona", persona, *filtered(*filters)], timeout=STUCK)

    r = perftest.undisturbed(attempt, lambda r: "" if "Failed status" in r.stdout else r.stdout)
    return r.stdout, r.stderr


@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
def test_ibv_rc_pingpong_prints_the_status_of_a_completion(run, persona):
    out, log = pair(run, persona, ["error:wc.send=RETRY_EXC_ERR@1"], "ibv_rc_pingpong", "-n", "20")
    assert out.startswith("client 1\n"), (out, log)
    assert "Failed status transport retry counter exceeded (12) for wr_id 2" in out, (out, log)
    assert "RETRY_EXC_ERR: filter error: wc.send, completion 1; " in log, (out, log)


@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
def test_perftest_exits_with_the_status_of_a_completion(run, persona):
    out, log = pair(run, persona, ["error:wc.write=REM_ACCESS_ERR@3"], "ib_write_bw", "-n", "100", "-Q", "1")
    assert not out.startswith("client 0\n"), (out, log)
    assert "Completion with error at client" in out and "Failed status 10" in out, (out, log)


@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
@pytest.mark.parametrize("rule, said", (("post_send=ENOMEM@1", "Couldn't post send"), ("create_qp=ENOMEM", "Couldn't create QP"),
                                        ("reg_mr=EPERM", "Couldn't register MR"), ("create_cq=EMFILE", "Couldn't create CQ")))
def test_ibv_rc_pingpong_says_which_call_failed(run, persona, rule, said):
    out, log = pair(run, persona, ["error:" + rule], "ibv_rc_pingpong", "-n", "20")
    assert out.startswith("client 1\n") and said in out, (out, log)
    assert f"filter error: {rule.split('=', maxsplit=1)[0]}, call 1: {rule.split('=')[1].split('@')[0]}" in log, (out, log)


@pytest.mark.parametrize("rule, said", (("qp=@2,modify_qp=EINVAL", "client 1\nFailed to modify QP to INIT"),
                                        ("qp=rc,create_qp=ENOMEM", "client 1\nCouldn't create QP"),
                                        ("qp=ud,create_qp=ENOMEM", "client 0\n"),
                                        ("cq=@2,wc.send=RETRY_EXC_ERR@3", "client 1\nFailed status transport retry counter exceeded (12)")))
def test_ibv_rc_pingpong_sees_the_errors_of_one_object_only(run, rule, said):
    # The server's objects are made first: it listens before the client starts.
    out, log = pair(run, "rxe", ["error:" + rule], "ibv_rc_pingpong", "-n", "20")
    assert out.startswith(said), (out, log)


def test_a_program_that_does_not_reach_the_call_sees_no_error(run):
    out, log = pair(run, "hfi1", ["error:create_qp=ENOMEM@3"], "ibv_rc_pingpong", "-n", "20")
    assert out.startswith("client 0\n"), (out, log)
    assert log == "uverbsctl run: warning: hfi1_0: filter error: create_qp=ENOMEM@3: 0 of 2\n", (out, log)


def test_a_section_of_the_file_filters_one_device(run):
    config = pathlib.Path(run.folder, "uverbsd.conf")
    config.write_text("[uverbsd]\ndevices = 2\n[device 1]\nfilter = error:alloc_context=EMFILE\n", encoding="ascii")
    config.chmod(0o644)
    for number, works in ((0, True), (1, False)):
        r = run("ibv_devinfo", "-d", f"hfi1_{number}", options=["--config", str(config)])
        assert (r.returncode == 0) == works, r
        assert ("filter error: alloc_context, call 1: EMFILE" in r.stderr) != works, r


@pytest.mark.parametrize("text, said", (("errr:x=1", "there is no filter 'errr'; the nearest names are error"),
                                        ("error:create_q=ENOMEM", "no option `create_q`; the nearest are create_"),
                                        ("error:create_qp", "`create_qp` is not KEY=VALUE"), ("", "is empty"),
                                        ("error:create_qp=ENOMEN", "create_qp: `ENOMEN` is not an errno")))
def test_a_wrong_filter_is_an_error_that_names_what_is_wrong(run, text, said):
    r = run("echo", "ran", options=filtered(text))
    assert r.returncode in (2, 125) and r.stdout == "" and said in r.stderr, r


# ---- a network that loses messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
def test_ibv_rc_pingpong_succeeds_on_a_network_that_loses_messages(run, persona):
    out, log = pair(run, persona, ["loss:rc=%10"], "ibv_rc_pingpong", "-n", "20")
    assert out.startswith("client 0\n"), (out, log)
    assert "filter loss: QP 0x" in log, (out, log)


@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
def test_ibv_rc_pingpong_prints_that_its_retries_are_used_up(run, persona):
    # The messages of both sides count: the client's are the first, the third, the fifth, ...
    out, log = pair(run, persona, ["loss:rc=@5+"], "ibv_rc_pingpong", "-n", "20")
    assert out.startswith("client 1\n"), (out, log)
    assert "Failed status transport retry counter exceeded (12) for wr_id 2" in out, (out, log)


@pytest.mark.parametrize("program", ("ibv_uc_pingpong", "ibv_ud_pingpong"))
def test_pingpongs_of_unreliable_qps_wait_for_a_lost_message_and_not_for_one_that_is_late(run, program):
    out, log = pair(run, "rxe", ["reorder"], program, "-n", "20")
    assert out.startswith("client 0\n") and "filter reorder: QP 0x" in log, (out, log)
    out, log = pair(run, "rxe", ["loss:when=@1"], program, "-n", "20", limit=10)
    assert out.startswith("client 124\n"), (out, log)


# Sends numbered messages, and prints those that arrive.
DATAGRAMS = (pathlib.Path(__file__).parents[2] / "contrib/datagrams.py").read_text(encoding="ascii")


@pytest.mark.parametrize("persona, kind", (("rxe", "ud"), ("hfi1", "uc")))
@pytest.mark.parametrize("filters, received", (
    (["reorder:hold=60s"], "2 1 4 3 6 5"), (["reorder:when=@3,hold=60s"], "1 2 4 3 5 6"),
    (["reorder:when=@2,hold=60s", "loss:when=@3"], "1 2 4 5 6")))
def test_receiver_finds_what_the_network_delivers_in_its_order(run, persona, kind, filters, received):
    pytest.importorskip("pyverbs")
    r = run("/usr/bin/python3", "-c", DATAGRAMS, "6", kind, options=["--persona", persona, *filtered(*filters)], timeout=STUCK)
    assert r.stdout == f"received {received}\n", r


def test_loss_begins_and_ends_while_a_program_runs(run):
    pytest.importorskip("pyverbs")
    lines, r = changed(run, """
        $UVERBSCTL filter add loss
        /usr/bin/python3 -c "$DATAGRAMS" 3
        $UVERBSCTL filter set loss:ud=@2
        /usr/bin/python3 -c "$DATAGRAMS" 3
        $UVERBSCTL filter remove loss
        /usr/bin/python3 -c "$DATAGRAMS" 3
        """, DATAGRAMS=DATAGRAMS)
    assert [line for line in lines if "received" in line] == ["received", "received 1 3", "received 1 2 3"], r


# ---- quotas, memory, time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule, said", (("limit:qp=1", "Couldn't create QP"), ("nomem:when=@4", "Couldn't create CQ")))
def test_ibv_rc_pingpong_says_what_it_could_not_have(run, rule, said):
    out, log = pair(run, "rxe", [rule], "ibv_rc_pingpong", "-n", "20")
    assert said in out and f"filter {rule.split(':', maxsplit=1)[0]}: " in log and "ENOMEM" in log, (out, log)


@pytest.mark.parametrize("persona, options", (("rxe", ()), ("rxe", ("-e",)), ("hfi1", ("-e",))))
def test_completions_come_later_to_ibv_rc_pingpong(run, persona, options):
    # Both sides wait for a send and a receive in each of four turns: a turn takes 50 ms and more.
    out, log = pair(run, persona, ["delay:wc.recv=50ms"], "ibv_rc_pingpong", "-n", "4", *options)
    assert out.startswith("client 0\n"), (out, log)
    assert min(float(t) for t in re.findall(r"([0-9.]+) usec/iter", out)) >= 50000, (out, log)


# ---- devices and ports that go -------------------------------------------------------------------------------------


@pytest.mark.parametrize("persona, name", (("rxe", "rxe0"), ("hfi1", "hfi1_0")))
def test_ibv_asyncwatch_sees_the_device_go_and_later_opens_find_it_again(run, persona, name):
    lines, r = changed(run, """
        cd "$TMPDIR"
        stdbuf -oL ibv_asyncwatch -d $NAME >watched & watch=$!
        until grep "async event FD" watched; do sleep 0.05; done
        $UVERBSCTL filter add flap:device=yes,after=1ms,down=200ms
        until grep DEVICE_FATAL watched; do sleep 0.05; done
        until ibv_devinfo -d $NAME 2>&1 | grep PORT_ACTIVE; do sleep 0.05; done
        kill $watch
        """, "--persona", persona, NAME=name)
    assert any("event_type IBV_EVENT_DEVICE_FATAL (8)" in line for line in lines) and "PORT_ACTIVE" in lines[-1], r
    assert r.stderr.count("filter flap: removal") == 1 and "filter flap: the device is back" in r.stderr, r


@pytest.mark.parametrize("persona", ("rxe", "hfi1"))
def test_the_post_at_which_the_device_goes_fails_in_ibv_rc_pingpong(run, persona):
    out, log = pair(run, persona, ["flap:device=yes,posts=10,down=60s"], "ibv_rc_pingpong", "-n", "100", "-e")
    # Each side says at which call it has met the removal: its post fails, or what it waits with.
    assert re.match("client 1\n.*(Couldn't post send|Couldn't request CQ|cq_event|[Ff]ailed)", out), (out, log)
    assert log.count("filter flap: removal 1 of the device") == 1, (out, log)
    assert re.search(r"filter flap: posts=10: 1 of \d\d+$", log, re.M), (out, log)


def test_no_post_waits_for_a_removal_that_nobody_carries_out(run):
    # Below this folder the name of the control socket is too long, and only the control removes devices.
    folder = pathlib.Path(run.folder, "x" * 100)
    env = {**run.env, "TMPDIR": folder.as_posix()}
    r = run("mkdir", folder.as_posix())
    assert r.returncode == 0, r
    r = run(UVERBSCTL, "pair", "ibv_rc_pingpong", "-n", "100", "-e", env=env,
            options=["--persona", "hfi1", *filtered("flap:device=yes,posts=10,down=60s")], timeout=STUCK)
    assert r.stdout.startswith("client 0\n"), r
    assert "filter flap: the device stays: ESHUTDOWN" in r.stderr, r


def test_a_device_goes_as_often_as_asked(run):
    path = pathlib.Path(run.folder, "log")
    with path.open("w", encoding="ascii") as log:
        r = run("sh", "-c", 'until [ $(grep -c "is back" "$0") = 3 ]; do sleep 0.05; done; ibv_devinfo', path.as_posix(), stderr=log,
                options=filtered("flap:device=yes,after=1ms,down=1ms,up=1ms,times=3"), timeout=STUCK)
    assert "PORT_ACTIVE" in r.stdout, r
    assert re.findall(r"removal (\d) of", path.read_text(encoding="ascii")) == ["1", "2", "3"]


# ---- while programs run ---------------------------------------------------------------------------------------------


def changed(run, script, *options, **env):
    """Runs a shell script under run, with $UVERBSCTL. Returns its output, both streams in one."""
    r = run("sh", "-c", script, options=options, timeout=STUCK, env={**run.env, "UVERBSCTL": UVERBSCTL, **env})
    return r.stdout.splitlines(), r


def test_filters_change_while_the_run_lasts(run):
    lines, r = changed(run, """
        $UVERBSCTL filter list | head -1
        $UVERBSCTL filter add error:alloc_pd=EMFILE
        $UVERBSCTL call PD ALLOC 2>&1
        $UVERBSCTL filter set hfi1_0 error:alloc_pd=ETXTBSY@2
        $UVERBSCTL call PD ALLOC 2>&1
        $UVERBSCTL call PD ALLOC 2>&1
        $UVERBSCTL filter add uverbs0 error:seed=5
        $UVERBSCTL filter remove error
        $UVERBSCTL filter remove error
        $UVERBSCTL filter list --json
        """)
    assert lines[:2] == ["hfi1_0: no filters", "hfi1_0: error:alloc_pd=EMFILE"], r
    assert "EMFILE" in lines[2] and lines[3] == "hfi1_0: error:alloc_pd=ETXTBSY@2", r
    assert lines[4].startswith("PD ALLOC ") and "ETXTBSY" in lines[5], r
    assert lines[6:9] == ["hfi1_0: error:seed=5 error:alloc_pd=ETXTBSY@2", "hfi1_0: error:alloc_pd=ETXTBSY@2", "hfi1_0: no filters"], r
    answer = json.loads("\n".join(lines[9:]))
    assert answer["devices"] == [{"device": "hfi1_0", "filters": []}], r
    assert "error" in [known["name"] for known in answer["known"]], r


@pytest.mark.parametrize("command, said", (
    ("add errr", "there is no filter 'errr'"), ("remove error", "has no filter 'error'"), ("set error", "has no filter 'error'"),
    ("add hfi1_7 error", "there is no such device; there are: hfi1_0, hfi1_1"), ("add error", "name one of the devices: hfi1_0, hfi1_1"),
    ("ad error", "unknown verb `ad`; the nearest are add,"), ("add hfi1_0 error:create_qp=X", "`X` is not an errno"),
    ("add", "FILTER is missing"), ("add hfi1_0 error x", "`x` is too much")))
def test_a_wrong_change_is_an_error_that_names_what_is_wrong(run, command, said):
    name = "" if "hfi1_" in command or command in ("add error", "ad error", "add") else " hfi1_0"
    verb, _, rest = command.partition(" ")
    r = run(UVERBSCTL, "filter", verb, *name.split(), *rest.split(), options=["--devices", "2"])
    assert r.returncode in (1, 2) and said in r.stderr + r.stdout, r


def test_a_device_that_is_plugged_in_again_has_the_filters_it_began_with(run):
    lines, r = changed(run, """
        $UVERBSCTL filter add error:seed=2 >/dev/null
        $UVERBSCTL device remove hfi1_0 >/dev/null
        $UVERBSCTL device add hfi1_0 >/dev/null
        $UVERBSCTL device add --name hfi1_3 --filter error:seed=3 >/dev/null
        $UVERBSCTL filter list | head -2
        """, "--filter", "error:seed=1")
    assert sorted(lines) == ["hfi1_0: error:seed=1", "hfi1_3: error:seed=3"], r


def test_a_device_that_is_refused_leaves_a_removed_one_of_its_name_its_filters_and_lists(run):
    lines, r = changed(run, """
        $UVERBSCTL device remove hfi1_0 >/dev/null
        $UVERBSCTL device add --name hfi1_0 --filter error:seed=2 --allow qp-types:UD --number 1 2>&1
        $UVERBSCTL device add --name hfi1_0 --filter no-such-filter 2>&1
        $UVERBSCTL device add hfi1_0 >/dev/null
        $UVERBSCTL filter list | grep hfi1_0
        timeout 20 ibv_ud_pingpong -d hfi1_0 2>&1
        """, "--filter", "error:seed=1", "--allow", "qp-types:RC", "--devices", "2")
    assert "number exists already" in lines[0] and len(lines) >= 4, r
    assert "hfi1_0: error:seed=1" in lines and "Couldn't create QP" in lines[-1], r


def test_a_device_that_a_user_adds_does_not_come_back_by_itself(run):
    """The other device tells when the time is over: long enough for the orders before it, however slow the machine."""
    lines, r = changed(run, """
        wait_for() { until [ "$($UVERBSCTL filter list | grep -o '^hfi1_.')" = "$1" ]; do sleep 0.1; done; }
        begin=$(date +%s%N)
        wait_for "$(printf 'hfi1_0\nhfi1_1')"
        down=$((6000000 + ($(date +%s%N) - begin) / 50))us      # at least 20 times what one order takes
        $UVERBSCTL filter add hfi1_0 flap:device=yes,after=1ms,down=$down
        $UVERBSCTL filter add hfi1_1 flap:device=yes,after=1ms,down=$down
        wait_for ""
        $UVERBSCTL device add --name hfi1_0 >/dev/null || exit
        $UVERBSCTL device remove hfi1_0 >/dev/null
        wait_for hfi1_1
        sleep 0.2
        $UVERBSCTL filter list | grep ^hfi1
        """, "--devices", "2")
    assert lines[-1] == "hfi1_1: no filters" and r.stderr.count("the device is back") == 1, r
    assert "does not come back" not in r.stderr, r


def test_a_device_comes_back_although_a_user_could_not_add_it(run):
    """Where the machine is so slow that the device is back before the order, it is away for longer the next time."""
    lines, r = changed(run, """
        for down in 2s 10s 50s; do
            $UVERBSCTL filter add hfi1_0 flap:device=yes,after=1ms,down=$down
            while $UVERBSCTL filter list | grep -q "^hfi1_0: flap"; do sleep 0.02; done
            $UVERBSCTL device add --name hfi1_0 --number 1 2>&1 | grep "number exists already" && break
        done
        until $UVERBSCTL filter list | grep ^hfi1_0; do sleep 0.1; done
        """, "--devices", "2")
    assert "number exists already" in lines[-2] and lines[-1] == "hfi1_0: no filters", r
    assert "filter flap: the device is back" in r.stderr, r


# ---- what is slow, and ports that go -----------------------------------------------------------------------------------


def test_ibv_rc_pingpong_takes_the_time_that_a_verb_is_delayed(run):
    begin = time.monotonic()
    out, log = pair(run, "rxe", ["delay:reg_mr=300ms", "delay:modify_qp=1ms"], "ibv_rc_pingpong", "-n", "20")
    assert out.startswith("client 0\n") and time.monotonic() - begin >= 0.3, (out, log)


@pytest.mark.parametrize("persona, name", (("rxe", "rxe0"), ("hfi1", "hfi1_0")))
def test_ibv_asyncwatch_sees_the_port_go_down_and_up(run, persona, name):
    lines, r = changed(run, """
        cd "$TMPDIR"
        stdbuf -oL ibv_asyncwatch -d $NAME >watched & watch=$!
        until grep "async event FD" watched; do sleep 0.05; done
        $UVERBSCTL filter add flap:after=1ms,down=60s
        until grep PORT_ERR watched; do sleep 0.05; done
        ibv_devinfo -d $NAME | grep state:
        $UVERBSCTL filter remove flap
        until grep PORT_ACTIVE watched; do sleep 0.05; done
        ibv_devinfo -d $NAME | grep state:
        kill $watch
        """, "--persona", persona, NAME=name)
    assert [line.split()[1] for line in lines if "state:" in line] == ["PORT_DOWN", "PORT_ACTIVE"], r
    assert any("IBV_EVENT_PORT_ERR (10), port 1" in line for line in lines), r
    assert "filter flap: port 1 down" in r.stderr and "filter flap: port 1 up" in r.stderr, r


# ---- what rules did ---------------------------------------------------------------------------------------------------


def test_filters_tell_on_how_many_calls_their_rules_acted_while_they_are_there_and_at_their_end(run):
    lines, r = changed(run, """
        $UVERBSCTL filter add error:alloc_pd=EMFILE%100,create_qp=ENOMEM@3 >/dev/null
        for i in $(seq 30); do echo PD ALLOC; done | $UVERBSCTL call --keep-going -f - >/dev/null 2>&1
        $UVERBSCTL filter list --counts | head -4
        $UVERBSCTL filter set error:alloc_pd=EMFILE@1000 >/dev/null
        $UVERBSCTL call PD ALLOC >/dev/null
        $UVERBSCTL filter list --json
        """, "--filter", "nomem:when=@1000")
    assert lines[:3] == ["hfi1_0: error:alloc_pd=EMFILE%100,create_qp=ENOMEM@3 nomem:when=@1000",
                         "  error: alloc_pd=EMFILE%100: 30 of 30", "  error: create_qp=ENOMEM@3: 0 of 0"], r
    # It saw the context of each program, and the PD of the second.
    assert re.fullmatch(r"  nomem: when=@1000: 0 of [1-9]\d*", lines[3]), r
    error, nomem = json.loads("\n".join(lines[4:]))["devices"][0]["filters"]
    assert error == {"filter": "error:alloc_pd=EMFILE@1000", "rules": [{"rule": "alloc_pd=EMFILE@1000", "seen": 1, "done": 0}]}, r
    assert nomem["rules"] == [{"rule": "when=@1000", "seen": nomem["rules"][0]["seen"], "done": 0}] and len(nomem) == 2, r
    # The lines for calls are limited, those at the end are not: when a filter is replaced, and at the end of the run.
    ends = re.findall(r"filter (\w+: \S+: \d+ of \d+)$", r.stderr, re.M)
    assert ends == ["error: alloc_pd=EMFILE%100: 30 of 30", "error: create_qp=ENOMEM@3: 0 of 0", "error: alloc_pd=EMFILE@1000: 0 of 1",
                    f"nomem: when=@1000: 0 of {nomem['rules'][0]['seen']}"], r


@pytest.mark.parametrize("uid, limited", ((None, True), (0, True), (1, False)))
def test_bytes_of_a_user_are_limited_at_ibv_reg_mr_of_perftest_and_ibv_rc_pingpong(run, uid, limited):
    """One side registers all that the user may; uid: the user's own number, or another one."""
    own = int(run("id", "-u").stdout)
    rule = "limit:bytes=1M" + ("" if uid is None else f",uid={own + uid}")
    program, size, said = "ibv_rc_pingpong", "600000", "Couldn't register MR"
    if uid is None:
        program, size, said = "ib_write_bw", "1048576", "Couldn't allocate MR"
    out, log = pair(run, "rxe", [rule], program, "-s", size, "-n", "5")
    assert (said in out) == limited and out.startswith("client 0\n") != limited, (out, log)
    assert ("filter limit: a user has all 1048576 bytes: ENOMEM" in log) == limited, (out, log)
    counts = "[1-9] of [1-9]" if limited else "0 of 0"
    assert re.search(f"filter limit: bytes=1M: {counts}$", log, re.M), (out, log)
