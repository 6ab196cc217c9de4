# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`uverbsctl metrics`, read by Prometheus's own parser."""
import json
import os
import socket
import stat
import subprocess
import threading

from prometheus_client.parser import text_string_to_metric_families

from conftest import STUCK, UVERBSCTL

PAIR = "(ibv_rc_pingpong -n 50 >/dev/null & sleep 0.5; ibv_rc_pingpong -n 50 localhost >/dev/null; wait)"


def parse(text):
    """{name: {labels: value}}; each metric is there once, with a help text and a type, and each sample once."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("gauge", "counter"), family
        for sample in family.samples:
            samples = found.setdefault(sample.name, {})
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in samples, sample
            assert sample.name.endswith("_total") == (family.type == "counter"), sample
            samples[labels] = sample.value
    assert text.count("# HELP") == text.count("# TYPE") == len({line.split()[2] for line in text.splitlines() if line[0] == "#"})
    return found


def run(script):
    done = subprocess.run([UVERBSCTL, "run", "--persona", "hfi1", "--", "bash", "-c", script], capture_output=True, text=True,
                          timeout=STUCK)
    assert done.returncode == 0, done
    return done


def test_metrics_are_what_the_device_has():
    hold = f"coproc {UVERBSCTL} call -f -; printf 'PD ALLOC\\nm = memory 16384\\n' >&${{COPROC[1]}}; read -u ${{COPROC[0]}} line"
    found = parse(run(f"{PAIR}; {hold}; sleep 1; {UVERBSCTL} metrics; kill $COPROC_PID").stdout)
    device = ("device", "hfi1_0")
    assert found["uverbsd_up"] == {(): 1}
    assert found["uverbsd_open_files"] == {(device,): 1}
    assert found["uverbsd_objects"] == {(device, ("type", "PD")): 1}
    (info, value), = found["uverbsd_device_info"].items()
    assert value == 1 and {device, ("backend", "soft"), ("persona", "hfi1")} <= set(info)
    port = device, ("port", "1")
    assert found["uverbsd_port_transmit_packets_total"][port] >= 400  # 100 messages of 4 packets
    assert found["uverbsd_port_transmit_bytes_total"][port] == found["uverbsd_port_receive_bytes_total"][port] == 100 * 4096
    assert any(dict(labels)["resource"] == "files" and held == 1 for labels, held in found["uverbsd_user_held"].items())
    assert "uverbsd_calls_total" not in found


def test_calls_and_errors_are_counted_while_it_runs(tmp_path):
    file = tmp_path / "uverbsd.prom"
    call = f"{UVERBSCTL} call PD"
    run(f"{UVERBSCTL} metrics --textfile {file} --interval 1 & until [[ -f {file} ]]; do sleep 0.1; done;"
        f"{call} ALLOC; {call} DEALLOC --pd_handle 99; until grep -q ENOENT {file}; do sleep 0.1; done; kill $!; exit 0")
    found = parse(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o644 and os.listdir(tmp_path) == [file.name]
    errors = {tuple(v for k, v in labels if k != "device"): value for labels, value in found["uverbsd_call_errors_total"].items()}
    assert errors == {("ENOENT", "PD", "DEALLOC"): 1}, errors
    calls = {dict(labels)["verb"]: value for labels, value in found["uverbsd_calls_total"].items() if ("object", "PD") in labels}
    assert calls == {"ALLOC": 1, "DEALLOC": 1}
    assert all(seconds > 0 for seconds in found["uverbsd_call_seconds_total"].values())


def test_a_file_says_that_the_daemon_is_down(tmp_path):
    file, none = tmp_path / "uverbsd.prom", str(tmp_path / "none")
    file.write_text("uverbsd_up 1\n")
    done = subprocess.run([UVERBSCTL, "metrics", "--control", none, "--textfile", file], capture_output=True, text=True, timeout=STUCK)
    assert done.returncode == 1 and "no uverbsd answers" in done.stderr
    assert parse(file.read_text()) == {"uverbsd_up": {(): 0}}
    done = subprocess.run([UVERBSCTL, "metrics", "--control", none], capture_output=True, text=True, timeout=STUCK)
    assert done.returncode == 1 and done.stdout == ""


def test_many_users_are_33_and_texts_are_escaped(tmp_path):
    """A socket that answers as a daemon would that has more users than have labels, and a device with a mad name."""
    path = str(tmp_path / "control")
    rows = [{"uid": uid, "resource": "files", "used": 1, "limit": 7} for uid in range(1000, 1100)]
    answers = {"status": {"devices": [{"device": 'a"b\\c', "open": 3}]}, "accounts": {"accounts": rows}}

    def serve():
        for _ in answers:
            with server.accept()[0] as s, s.makefile("rw") as f:
                f.write(json.dumps(answers[f.readline().strip()]) + "\n")

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        done = subprocess.run([UVERBSCTL, "metrics", "--control", path], capture_output=True, text=True, timeout=STUCK)
        thread.join(STUCK)
    found = parse(done.stdout)
    held = {dict(labels)["user"]: value for labels, value in found["uverbsd_user_held"].items()}
    assert held == {**{str(uid): 1 for uid in range(1000, 1032)}, "others": 68}
    assert len(found["uverbsd_user_limit"]) == 32 and found["uverbsd_open_files"] == {(("device", 'a"b\\c'),): 3}
