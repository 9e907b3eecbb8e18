#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""fraktor path as people and scripts use it: what it prints, where the caret is, exit codes, and
input made to confuse it."""

import argparse
import json
import os
import re
import subprocess
import sys

PROGRAM = ""
problems = []


def run(*args, stdin=b""):
    """(exit code, stdout, stderr) of `fraktor path ARGS`; bytes in, text out."""
    command = [PROGRAM, "path", *args]
    done = subprocess.run([os.fsencode(part) for part in command], input=stdin,
                          capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def expect(what, condition, shown=""):
    if not condition:
        problems.append(f"{what}\n{shown}")


def is_plain(text):
    """Nothing in it moves the cursor or ends a line early."""
    return all(c == "\n" or c.isprintable() for c in text)


def refused(args, code, at, pointed, argument=None):
    """Refused for people: the text, a caret under the byte, a sentence with the code."""
    status, out, err = run(*args)
    lines = err.split("\n")
    expect(f"{args}: exit 1, no data", (status, out) == (1, ""), f"{status} {out}{err}")
    expect(f"{args}: three lines", len(lines) == 4 and lines[3] == "", err)
    expect(f"{args}: one line of text stays one", is_plain(err), repr(err))
    if len(lines) != 4:
        return
    expect(f"{args}: a caret alone", re.fullmatch(" *\\^", lines[1]), err)
    column = len(lines[1]) - 1
    expect(f"{args}: the caret is under {pointed!r}", lines[0][column:].startswith(pointed), err)
    expect(f"{args}: {code} at {at}", f"({code}, byte {at}" in lines[2], err)
    if argument is not None:
        expect(f"{args}: argument {argument}", f"argument {argument}" in lines[2], err)


def test_text():
    status, out, err = run("parse", "Fraktor.TCP://sys@h:5//user/a%20b#7")
    expect("parse for people", (status, err) == (0, ""), err)
    for row in (r"scheme +fraktor\.tcp", "system +sys", "host +h", "port +5", "segments +0  user",
                "  +1  a%20b", "uid +7", "canonical +fraktor.tcp://sys@h:5/user/a%20b#7",
                "canonical_no_uid +fraktor.tcp://sys@h:5/user/a%20b"):
        expect(f"parse shows {row}", re.search(f"^{row}$", out, re.M), out)
    expect("no operation is parse", run("fraktor://sys/user/a") == run("parse", "fraktor://sys/user/a"))
    expect("a single field alone",
           run("resolve", "fraktor://s/user/a", "../b") == (0, "fraktor://s/user/b\n", ""))
    expect("autoname", run("autoname", "64") == (0, "$ab\n", ""))
    expect("autoname below 0", run("autoname", "--", "-1") == (0, "$~~~~~~~~~~p\n", ""))
    expect("name", run("name", "worker-1") == (0, "ok\n", ""))
    expect("a no is an answer", run("match", "a*", "b") == (0, "no\n", ""))
    expect("equal: a no is an answer", run("equal", "fraktor://s/a", "fraktor://s/b")[0] == 0)
    expect("a dash after --", run("name", "--", "-x") == (0, "ok\n", ""))
    expect("pekko rules", run("parse", "pekko://s/user/a#-7", "--rules", "pekko")[0] == 0)


def test_caret():
    refused(["fraktor://s@h:80x/user/a"], "invalid_authority", 16, "x/user/a")
    refused(["parse", "fraktor://sys/us er/a"], "invalid_segment", 16, " er/a")
    refused(["name", "a/b"], "invalid_segment", 1, "/b")
    refused(["name", "$x"], "reserved_segment", 0, "$x")
    refused(["name", ""], "empty", 0, "")
    refused(["name", "a%"], "percent_decode", 1, "%")
    refused(["equal", "fraktor://s/a", "fraktor://s/a b"], "invalid_segment", 13, " b", 2)
    refused(["equal", "x", "fraktor://s/a b"], "invalid_scheme", 1, "", 1)
    refused(["equal", "akka://s/a", "fraktor://s/a b"], "invalid_scheme", 0, "akka", 1)
    refused(["resolve", "fraktor://s/user/a", "../../.."], "relative_escape", 3, "../..", 2)


def test_hostile_text():
    # What cannot be shown is escaped, and the caret still stands below what is wrong.
    refused(["name", "a\nb"], "invalid_segment", 1, "\\nb")
    refused(["name", "a\x1b[31mb"], "invalid_segment", 1, "\\x1B[31mb")
    refused(["name", b"a\xffb"], "invalid_segment", 1, "\\xFFb")
    refused(["name", "ab\u540d"], "invalid_segment", 2, "\u540d")
    refused(["name", "ab\u202ecd"], "invalid_segment", 2, "\\xE2\\x80\\xAEcd")
    refused(["name", "a\\b"], "invalid_segment", 1, "\\\\b")
    # At the program's own limit of one argument; the batch takes more.
    status, out, err = run("parse", "fraktor://s/" + "x" * 120000)
    expect("120 kB refused", (status, out) == (1, "") and "too_long" in err, err[:500])
    expect("of a long text only a part", len(err) < 600, err[:1000])
    for text in ("fraktor://s/a\nb", "fraktor://s/\x01", b"fraktor://s/\xff\xfe", "\x1b]0;x\x07"):
        status, out, err = run("--json", "parse", text)
        answer = json.loads(out)
        expect(f"{text!r}: valid JSON in one line",
               status == 1 and err == "" and out.count("\n") == 1 and not answer["ok"], out)


def test_usage():
    for args in ([], ["parse"], ["parse", "a", "b"], ["equal", "a"], ["frobnicate"],
                 ["frobnicate", "a"], ["--rules", "akka", "parse", "a"], ["parse", "a", "--rules"],
                 ["--nonsense"], ["autoname", "x"], ["autoname", "-1"], ["batch", "x"],
                 ["autoname", "18446744073709551616"], ["resolve", "a", "b", "c"],
                 ["odd\nword", "x"]):
        status, out, err = run(*args)
        expect(f"{args}: exit 2, words on stderr only", (status, out) == (2, ""), f"{status} {err}")
        expect(f"{args}: hint and example",
               "Try 'fraktor path --help'" in err and "example: fraktor path " in err, err)
        expect(f"{args}: no foreign line", is_plain(err) and len(err.splitlines()) == 3, err)
    status, out, err = run("--help")
    expect("--help", status == 0 and err == "" and "example:" in out and "batch" in out, out)


def test_batch():
    lines = [b"parse\tfraktor://s/user/a", b"", b"#", b"frobnicate\tx", b"parse", b"name\ta\tb",
             b"name\t\\q", b"name\ta\\x4", b"name\t\\e", b"name\t", b"name\t\\N", b"name\ta\\x20b",
             b"name\tab\\", b"name\t\\x61\\x62\t\\N", b"name\ta\0b", b"autoname\tx", b"\xff\xfe\tx",
             b"equal\tfraktor://s/a\t\\N", b"match\ta*\ta\\tb", b"autoname\t0"]
    wanted = [True, "usage", "usage", "usage", "usage", "usage", "usage", "usage", "empty", "empty",
              "usage", "invalid_segment", "usage", True, "invalid_segment", "usage", "usage",
              "usage", True, True]
    status, out, err = run("batch", stdin=b"\n".join(lines))  # the last without a newline
    answers = [json.loads(line) for line in out.splitlines()]
    got = [answer["ok"] or answer["error"] for answer in answers]
    expect("one answer for each line, the bad ones too", (status, err, got) == (0, "", wanted),
           f"{status} {err}\n{list(zip(lines, got))}")
    expect("the place of a bad escape is the line's", answers[6]["at"] == 5, answers[6])
    expect("a tab by escape", answers[18]["match"] is True, answers[18])
    expect("nothing asked, nothing said", run("batch") == (0, "", ""))

    megabyte = b"parse\tfraktor://s/" + b"x" * (1 << 20)
    too_much = b"parse\t" + b"y" * (5 << 20)
    status, out, _ = run("batch", stdin=b"\n".join([megabyte, too_much, b"name\ta"]) + b"\n")
    answers = [json.loads(line) for line in out.splitlines()]
    expect("a megabyte is refused by the rules, five by the batch, and it goes on",
           [a["ok"] or a["error"] for a in answers] == ["too_long", "usage", True], out)
    expect("too_long names no byte beyond the text", answers[0]["at"] <= 1 << 20 | 64, out)

    every = b"".join(b"name\t\\x%02x\n" % byte for byte in range(256))
    raw = b"".join(b"name\t" + bytes([byte]) + b"\n" for byte in range(256) if byte not in b"\n\t\\")
    status, out, _ = run("batch", stdin=every + raw)
    expect("every byte is answered", len([json.loads(line) for line in out.splitlines()]) == 509, out)


def test_batch_is_a_conversation():
    """An answer comes before the next question."""
    with subprocess.Popen([PROGRAM, "path", "batch"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as program:
        for n in range(100):
            program.stdin.write(b"autoname\t%d\n" % n)
            program.stdin.flush()
            answer = json.loads(program.stdout.readline())
            expect(f"question {n}", answer["ok"], answer)
        program.stdin.close()
        expect("the end", program.wait(timeout=60) == 0)


def main():
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    PROGRAM = parser.parse_args().program
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    for test in tests:
        test()
    print("\n".join(problems))
    print(f"{len(tests)} tests, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
