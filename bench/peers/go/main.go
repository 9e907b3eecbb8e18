// SPDX-License-Identifier: MIT OR Apache-2.0

// The workloads on plain goroutines: an actor is a goroutine that owns a channel. Go has bounded
// channels only; where queues grow they hold 1024 messages and a sender waits for room.
package main

import (
	"sync/atomic"

	. "gobench"
)

const boxLen = 1024

type message struct {
	tag   uint64
	value uint64
	from  chan message
}

const (
	tagPing = iota
	tagPong
)

func pingpong(ops uint64) uint64 {
	rounds := Share(ops, 2)
	pingBox, pongBox, done := make(chan message, 1), make(chan message, 1), make(chan struct{})
	go func() {
		for m := range pongBox {
			m.from <- message{tagPong, m.value, pongBox}
		}
	}()
	go func() {
		for i := uint64(0); i < rounds; i++ {
			pongBox <- message{tagPing, i, pingBox}
			Check("pingpong", (<-pingBox).value, i)
		}
		close(done)
	}()
	<-done
	return rounds * 2
}

func ring(ops uint64) uint64 {
	boxes := make([]chan message, RingLen)
	for i := range boxes {
		boxes[i] = make(chan message, 1)
	}
	done := make(chan uint64)
	member := func(index int) {
		in, out := boxes[index], boxes[(index+1)%RingLen]
		for m := range in {
			if m.value == 0 {
				done <- uint64(index)
				return
			}
			out <- message{tagPing, m.value - 1, nil}
		}
	}
	for i := range boxes {
		go member(i)
	}
	boxes[0] <- message{tagPing, ops, nil}
	Check("ring", <-done, ops%RingLen)
	return ops
}

func produce(producers, rounds uint64) uint64 {
	total := producers * rounds
	box, done := make(chan message, boxLen), make(chan uint64)
	go func() {
		counted := uint64(0)
		for range box {
			counted++
			if counted == total {
				done <- counted
			}
		}
	}()
	for p := uint64(0); p < producers; p++ {
		go func() {
			for i := uint64(0); i < rounds; i++ {
				box <- message{tagPing, i, nil}
			}
		}()
	}
	Check("producers", <-done, total)
	return total
}

func forkjoin(ops uint64) uint64 {
	rounds := Share(ops, ForkjoinLen)
	done := make(chan uint64, ForkjoinLen)
	boxes := make([]chan message, ForkjoinLen)
	for i := range boxes {
		boxes[i] = make(chan message, boxLen)
		go func(box chan message) {
			counted := uint64(0)
			for ; counted < rounds; counted++ {
				<-box
			}
			done <- counted
		}(boxes[i])
	}
	go func() {
		for j := uint64(0); j < rounds; j++ {
			for _, box := range boxes {
				box <- message{}
			}
		}
	}()
	for range boxes {
		Check("forkjoin", <-done, rounds)
	}
	return ForkjoinLen * rounds
}

func create(ops uint64) uint64 {
	var reached atomic.Uint64
	done := make(chan struct{})
	once := func(box chan message) {
		<-box
		if reached.Add(1) == ops {
			close(done)
		}
	}
	go func() {
		for i := uint64(0); i < ops; i++ {
			box := make(chan message, 1)
			go once(box)
			box <- message{}
		}
	}()
	<-done
	return ops
}

func skynetNode(up chan uint64, first, size uint64) {
	if size == 1 {
		up <- first
		return
	}
	box := make(chan uint64, SkynetFanout)
	part := size / SkynetFanout
	for i := uint64(0); i < SkynetFanout; i++ {
		go skynetNode(box, first+i*part, part)
	}
	sum := uint64(0)
	for i := 0; i < SkynetFanout; i++ {
		sum += <-box
	}
	up <- sum
}

func skynet(ops uint64) uint64 {
	leaves := SkynetLeaves(ops)
	box := make(chan uint64, 1)
	go skynetNode(box, 0, leaves)
	Check("skynet", <-box, leaves*(leaves-1)/2)
	return SkynetActors(leaves)
}

// In big nobody has more than one ping on its way, so a box never holds more than one message of
// each member and a little more; with that much room nobody can block the others.
func big(ops uint64) uint64 {
	rounds := Share(ops, BigLen*2)
	boxes := make([]chan message, BigLen)
	for i := range boxes {
		boxes[i] = make(chan message, BigLen+8)
	}
	done, start := make(chan uint64, BigLen), make(chan struct{})
	member := func(index uint64) {
		random, left, me := Seed(index), rounds, boxes[index]
		next := func() {
			if left > 0 {
				left--
				boxes[Xorshift(&random)%BigLen] <- message{tagPing, 0, me}
			} else {
				done <- left
			}
		}
		<-start
		next()
		for m := range me {
			if m.tag == tagPing {
				m.from <- message{tagPong, 0, nil}
			} else {
				next()
			}
		}
	}
	for i := uint64(0); i < BigLen; i++ {
		go member(i)
	}
	close(start)
	for range boxes {
		Check("big", <-done, 0)
	}
	return BigLen * rounds * 2
}

func main() {
	Main("go", map[string]Workload{
		"pingpong": {10_000_000, pingpong},
		"ring":     {5_000_000, ring},
		"count":    {10_000_000, func(ops uint64) uint64 { return produce(1, ops) }},
		"fanin": {8_000_000, func(ops uint64) uint64 {
			return produce(Producers, Share(ops, Producers))
		}},
		"forkjoin": {6_000_000, forkjoin},
		"create":   {1_000_000, create},
		"skynet":   {1_111_111, skynet},
		"big":      {8_000_000, big},
	})
}
