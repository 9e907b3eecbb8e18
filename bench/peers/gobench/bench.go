// SPDX-License-Identifier: MIT OR Apache-2.0

// Package gobench is what the Go programs of this directory share: the command line, the sizes of
// the workloads and the one line of JSON at the end.
package gobench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"time"
)

const (
	RingLen      = 503 // actors in the ring
	Producers    = 8   // senders of fanin
	ForkjoinLen  = 60  // receivers of forkjoin
	BigLen       = 200 // actors of big
	SkynetFanout = 10  // children of every inner node of skynet
)

// Workload runs about ops operations, checks its own result and returns how many it really did.
type Workload struct {
	Ops uint64 // the default
	Run func(ops uint64) uint64
}

// Fail ends the program: the workload computed something wrong.
func Fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "FAIL "+format+"\n", args...)
	os.Exit(1)
}

func usage() {
	fmt.Fprintf(os.Stderr, "usage: %s WORKLOAD THREADS [--ops N]\n", os.Args[0])
	os.Exit(2)
}

// Main runs the workload named on the command line on that many processors and reports it.
func Main(name string, workloads map[string]Workload) {
	if len(os.Args) != 3 && (len(os.Args) != 5 || os.Args[3] != "--ops") {
		usage()
	}
	threads, err := strconv.Atoi(os.Args[2])
	if err != nil || threads < 1 {
		usage()
	}
	workload, found := workloads[os.Args[1]]
	if !found {
		Fail("%s: unknown workload", os.Args[1])
	}
	ops := workload.Ops
	if len(os.Args) == 5 {
		ops, err = strconv.ParseUint(os.Args[4], 10, 62)
		if err != nil || ops == 0 {
			usage()
		}
	}
	runtime.GOMAXPROCS(threads)
	start := time.Now()
	done := workload.Run(ops)
	seconds := time.Since(start).Seconds()
	line, _ := json.Marshal(struct {
		Runtime  string  `json:"runtime"`
		Workload string  `json:"workload"`
		Threads  int     `json:"threads"`
		Ops      uint64  `json:"ops"`
		Seconds  float64 `json:"seconds"`
		Rate     float64 `json:"ops_per_s"`
	}{name, os.Args[1], threads, done, seconds, math.Round(float64(done) / seconds)})
	fmt.Println(string(line))
}

// Check fails the program unless got is what it must be.
func Check(what string, got, want uint64) {
	if got != want {
		Fail("%s: got %d, want %d", what, got, want)
	}
}

// Share tells how often one of parts actors repeats its step; never 0.
func Share(ops, parts uint64) uint64 {
	return max(ops/parts, 1)
}

// SkynetActors counts the nodes of a tree: 1 + 10 + 100 + ... + leaves.
func SkynetActors(leaves uint64) uint64 {
	actors := uint64(0)
	for ; leaves > 0; leaves /= SkynetFanout {
		actors += leaves
	}
	return actors
}

// SkynetLeaves finds the largest tree with no more than ops actors, but at least one level.
func SkynetLeaves(ops uint64) uint64 {
	leaves := uint64(SkynetFanout)
	for SkynetActors(leaves*SkynetFanout) <= ops {
		leaves *= SkynetFanout
	}
	return leaves
}

// Seed starts the random sequence of one actor of big; all programs use the same ones.
func Seed(index uint64) uint64 {
	return 88172645463325252 ^ ((index + 1) * 0x9E3779B97F4A7C15)
}

// Xorshift steps such a sequence.
func Xorshift(state *uint64) uint64 {
	x := *state
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*state = x
	return x
}
