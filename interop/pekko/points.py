# SPDX-License-Identifier: MIT OR Apache-2.0
"""What two nodes must be able to do with each other; each point in both directions."""

import itertools
import re
import time

from node import Failed

POINTS = []
NUMBERS = itertools.count(1)


def point(title):
    def add(check):
        POINTS.append((title, check))
        return check
    return add


def of(path):
    """A pattern for a reference with whatever uid."""
    return re.compile("^" + re.escape(path) + r"(#-?\d+)?$")


def identify(x, path):
    number = f"i{next(NUMBERS)}"
    x.do(f"identify {number} {path}")
    return x.expect("identity", id=number)["ref"]


def call(x, y, patience=10.0):
    """Until there is an answer: what is sent while the other is not known may be lost."""
    until = time.monotonic() + patience
    while True:
        x.do(f"tell {y.path('/user/echo')} string are you there")
        try:
            return x.expect("received", timeout=1.0, value="are you there")
        except Failed:
            if time.monotonic() > until:
                raise


# ---- messages ----------------------------------------------------------------------------------

@point("tell, and the answer to its sender")
def tell(x, y):
    x.do(f"tell {y.path('/user/echo')} string hello")
    x.expect("received", type="string", value="hello", sender=of(y.path("/user/echo")))


@point("strings")
def strings(x, y):
    for text in ("", "a", "Grüße, 世界 🙂", "x" * 60000):
        x.do(f"tell {y.path('/user/echo')} string {text}")
        x.expect("received", type="string", value=text)


@point("bytes")
def bytes_(x, y):
    for data in (b"", b"\0", bytes(range(256)), b"\xff" * 100000):
        x.do(f"tell {y.path('/user/echo')} bytes {data.hex()}")
        x.expect("received", type="bytes", value=data.hex())


@point("int, long, bool")
def numbers(x, y):
    cases = [("int", n) for n in (0, 1, -1, 2**31 - 1, -2**31)]
    cases += [("long", n) for n in (0, 1, -1, 2**63 - 1, -2**63)]
    for kind, value in [*cases, ("bool", "true"), ("bool", "false")]:
        x.do(f"tell {y.path('/user/echo')} {kind} {value}")
        x.expect("received", type=kind, value=str(value))


@point("without a sender: the answer is a dead letter there")
def no_sender(x, y):
    x.do(f"send {y.path('/user/echo')} string nobody")
    y.expect("dead_letter", type="string", value="nobody")


@point("to nobody: a dead letter there")
def no_recipient(x, y):
    x.do(f"tell {y.path('/user/absent')} string lost")
    y.expect("dead_letter", type="string", value="lost", to=of(y.path("/user/absent")))


@point("ask")
def ask(x, y):
    x.do(f"ask q1 {y.path('/user/echo')} string question")
    x.expect("answer", id="q1", type="string", value="question")
    x.do(f"ask q2 {y.path('/user/echo')} long 42")
    x.expect("answer", id="q2", type="long", value="42")


@point("ask without an answer: a timeout here")
def ask_timeout(x, y):
    x.do(f"ask q3 {y.path('/user/pool')} string silence")
    x.expect("answer", id="q3", error=lambda e: e is not None)


def aim(node, path):
    """Returns when the node has done so: it does one thing after the other."""
    node.do(f"aim {path}")
    node.do(f"ask aimed {node.path('/user/echo')} string aimed")
    node.expect("answer", id="aimed")


@point("forward: the sender stays")
def forward(x, y):
    aim(y, y.path("/user/echo"))
    x.do(f"tell {y.path('/user/forward')} string there")
    x.expect("received", value="there", sender=of(y.path("/user/echo")))
    aim(y, x.path("/user/echo"))
    x.do(f"tell {y.path('/user/forward')} string and back")
    x.expect("received", value="and back", sender=of(x.path("/user/echo")))
    x.do(f"ask q4 {y.path('/user/forward')} string and asked")
    x.expect("answer", id="q4", value="and asked")


@point("a reference in a message is used")
def reference(x, y):
    x.do(f"tell {y.path('/user/caller')} ref /user/probe")
    x.expect("received", value="called", sender=of(y.path("/user/caller")))
    x.do(f"tell {y.path('/user/giver')} string please")
    given = x.expect("received", type="ref", sender=of(y.path("/user/giver")))["value"]
    if not re.match(re.escape(y.path("/user/giver/")) + r".+#-?\d+$", given or ""):
        raise Failed(f"given was {given}")
    x.do(f"tell {given} string hidden")
    x.expect("received", value="hidden", sender=given)
    x.do(f"tell {y.path('/user/echo')} ref {given}")
    x.expect("received", type="ref", value=given)


# ---- selections --------------------------------------------------------------------------------

@point("selection")
def selection(x, y):
    x.do(f"select {y.path('/user/echo')} string one")
    x.expect("received", value="one", sender=of(y.path("/user/echo")))
    x.do(f"select {y.path('/user/pool/../echo')} int 7")
    x.expect("received", type="int", value="7", sender=of(y.path("/user/echo")))


@point("selection with wildcards")
def wildcard(x, y):
    x.do(f"select {y.path('/user/pool/w-*')} string many")
    for name in ("w-1", "w-2", "w-3"):
        x.expect("received", value="many", sender=of(y.path(f"/user/pool/{name}")))
    x.refuse("received", 0.2)
    x.do(f"select {y.path('/user/p*l/*')} string all")
    for name in ("w-1", "w-2", "w-3", "other"):
        x.expect("received", value="all", sender=of(y.path(f"/user/pool/{name}")))


@point("Identify")
def identify_point(x, y):
    ref = identify(x, y.path("/user/echo"))
    if not re.match(re.escape(y.path("/user/echo")) + r"#-?\d+$", ref or ""):
        raise Failed(f"the identity is {ref}")
    x.do(f"tell {ref} string by identity")
    x.expect("received", value="by identity", sender=ref)
    if identify(x, y.path("/user/absent")) is not None:
        raise Failed("somebody is where nobody is")


@point("a reference with a uid is not the next actor of that name")
def incarnation(x, y):
    y.do("spawn brief echo")
    first = y.expect("spawned")["ref"]
    x.do(f"tell {first} string first")
    x.expect("received", value="first", sender=first)
    y.do("stop brief")
    time.sleep(0.3)
    y.do("spawn brief echo")
    second = y.expect("spawned")["ref"]
    x.do(f"tell {first} string late")
    y.expect("dead_letter", value="late")
    x.do(f"tell {second} string second")
    x.expect("received", value="second", sender=second)
    y.do("stop brief")


# ---- watching ----------------------------------------------------------------------------------

def mortal(x, y, settle=0.6):
    """Somebody of y whom x watches. The other side is told over a stream of its own: that takes."""
    y.do("spawn mortal echo")
    ref = y.expect("spawned")["ref"]
    x.do(f"watch {ref}")
    time.sleep(settle)
    return ref


HEARTBEATS = 3.0  # seconds until the watcher's side has heard some, and knows the uid by them


@point("watch, and Terminated when it stops")
def watch(x, y):
    ref = mortal(x, y)
    y.do("stop mortal")
    x.expect("terminated", ref=ref, existence_confirmed=True, address_terminated=False)
    x.refuse("terminated", 0.3)


@point("watch of nobody: Terminated at once")
def watch_nobody(x, y):
    x.do(f"watch {y.path('/user/absent')}")
    x.expect("terminated", ref=of(y.path("/user/absent")), address_terminated=False)


@point("unwatch: no Terminated")
def unwatch(x, y):
    ref = mortal(x, y)
    x.do(f"unwatch {ref}")
    time.sleep(0.6)
    y.do("stop mortal")
    x.refuse("terminated", 1.0)


@point("PoisonPill and Kill")
def poison(x, y):
    for message in ("poison", "kill"):
        ref = mortal(x, y)
        x.do(f"tell {ref} {message}")
        x.expect("terminated", ref=ref, address_terminated=False)


# ---- many --------------------------------------------------------------------------------------

@point("many in order, none lost or doubled")
def flood(x, y, total=100000):
    y.do("report")
    y.expect("sink")
    x.do(f"flood {y.path('/user/sink')} {total}")
    x.expect("flooded", timeout=60, count=total)
    y.do("report")
    y.expect("sink", count=total, last=total, wrong=0)


@point("compressed: the same by tables")
def compressed(x, y):
    """Tables are advertised every second here; those of the flood are in use by now."""
    time.sleep(1.5)
    flood(x, y, 5000)
    tell(x, y)
    ask(x, y)


# ---- faults ------------------------------------------------------------------------------------

@point("connections are cut: watches hold, messages pass again")
def cut(x, y):
    ref = mortal(x, y)
    for end in (x, y):
        end.proxy.cut()
    time.sleep(3.0)
    x.refuse("terminated", 0)
    call(x, y)
    y.do("stop mortal")
    x.expect("terminated", ref=ref, address_terminated=False, timeout=10)


@point("exit: watchers are told")
def farewell(x, y):
    ref = mortal(x, y)
    y.exit()
    x.expect("terminated", ref=ref, timeout=10)
    restart(x, y)


@point("kill -9: Terminated by the address, then quarantine")
def death(x, y):
    ref = mortal(x, y, HEARTBEATS)
    old = y.uid
    y.kill()
    x.expect("terminated", ref=ref, address_terminated=True, timeout=25)
    x.expect("quarantined", text=re.compile(old_uid(old)), timeout=5)
    restart(x, y)


def old_uid(uid):
    """Pekko prints it with a sign."""
    number = int(uid)
    return f"({number}|{number - 2**64})" if number >= 2**63 else str(number)


def restart(x, y):
    """The next incarnation at the same address, which is another system."""
    old = y.uid
    y.start()
    if y.uid == old:
        raise Failed("the uid is the old one")
    # The new one speaks first: while x has the old one in quarantine, nothing of x's goes there.
    call(y, x)
    call(x, y)
    x.forget()
    ref = mortal(x, y)
    y.do("stop mortal")
    x.expect("terminated", ref=ref, address_terminated=False)


@point("quarantine: both know, nothing passes, a new incarnation may come")
def quarantine(x, y):
    call(x, y)
    x.do(f"quarantine {y.address} {y.uid}")
    x.expect("quarantined")
    y.expect("this_actor_system_quarantined")
    x.do(f"tell {y.path('/user/echo')} string kept out")
    x.refuse("received", 1.0, value="kept out")
    y.do(f"tell {x.path('/user/echo')} string kept out")
    y.refuse("received", 1.0, value="kept out")
    y.kill()
    restart(x, y)


@point("silence: Terminated by the detector, quarantine")
def silence(x, y):
    ref = mortal(x, y, HEARTBEATS)
    for end in (x, y):
        end.proxy.hold()
    try:
        x.expect("terminated", ref=ref, address_terminated=True, timeout=25)
        x.expect("quarantined", timeout=5)
    finally:
        for end in (x, y):
            end.proxy.resume()
    y.expect("this_actor_system_quarantined", timeout=10)
    y.kill()
    restart(x, y)
