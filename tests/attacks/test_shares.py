# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Clients that take all that they can get of a device: other users still get as much, and what is announced is what there is."""
from conftest import Attack, USER, cuse

# A quarter of each; 1,024 named XRC domains are a constant, which QUERY_DEVICE does not tell.
DEVICE = ("--max-ah", "64", "--max-mcast-grp", "32", "--max-dm-size", "65536")
ALL = ["ah 16 16 EAGAIN", "mcast 8 8 ENOMEM", "xrcd 0 256 ENOMEM", "dm 16 16 ENOMEM"]


def test_greedy_user_leaves_others_their_shares(start):
    d = start(*DEVICE, *cuse.UNMAPPED)  # its client addresses by LID
    greedy = []
    for user in USER, USER + 1, USER, USER + 2:
        again = any(user == holder for holder, _ in greedy)
        first, *rest = [f"{line.split()[0]} {line.split()[1]} 0 {line.split()[3]}" for line in ALL] if again else ALL
        greedy.append((user, Attack("greedy", says=first, user=user)))
        for line in rest:
            greedy[-1][1].hear(line)
    rows = {(row["uid"], row["resource"]): (row["used"], row["limit"]) for row in d.status("accounts")["quotas"]}
    assert rows[USER, "ahs"] == (16, 16) and rows[USER + 1, "named-xrcds"] == (256, 256), rows
    for _, attack in greedy:
        attack.end()
    d.wait_idle()
