// SPDX-License-Identifier: MIT OR Apache-2.0

package gobench

import "sync/atomic"

// Actors is an actor library as the workloads see it; R is its kind of reference. This puts one
// indirect call into every operation, which should be little beside a message; it is not measured.
type Actors[R any] struct {
	Spawn func(receive func(self R, message any)) R
	Send  func(to R, message any)
	Stop  func(self R)
}

// The messages of the workloads. A library sends its own ones too (started, stopped), which
// nobody here knows and every receive function ignores.
type (
	start  struct{}
	number struct{ value uint64 }
	ping   struct {
		value uint64
		from  any
	}
)

// Go boxes a value that is stored in an interface; pointers spare that, and these have no content.
var theStart = &start{}

// ActorWorkloads returns all workloads on the given library.
func ActorWorkloads[R any](connect func() Actors[R]) map[string]Workload {
	on := func(run func(Actors[R], uint64) uint64) func(uint64) uint64 {
		return func(ops uint64) uint64 { return run(connect(), ops) }
	}
	return map[string]Workload{
		"pingpong": {2_000_000, on(pingpong[R])},
		"ring":     {2_000_000, on(ring[R])},
		"count": {10_000_000, on(func(a Actors[R], ops uint64) uint64 {
			return produce(a, 1, ops)
		})},
		"fanin": {8_000_000, on(func(a Actors[R], ops uint64) uint64 {
			return produce(a, Producers, Share(ops, Producers))
		})},
		"forkjoin": {6_000_000, on(forkjoin[R])},
		"create":   {200_000, on(create[R])},
		"skynet":   {111_111, on(skynet[R])},
		"big":      {2_000_000, on(big[R])},
	}
}

func pingpong[R any](a Actors[R], ops uint64) uint64 {
	rounds := Share(ops, 2)
	done := make(chan uint64)
	pong := a.Spawn(func(self R, message any) {
		if m, ok := message.(*ping); ok {
			a.Send(m.from.(R), &number{m.value})
		}
	})
	left := rounds
	first := a.Spawn(func(self R, message any) {
		m, ok := message.(*number)
		if !ok {
			return
		}
		if left > 0 {
			left--
			a.Send(pong, &ping{left, self})
		} else {
			done <- m.value
		}
	})
	a.Send(first, &number{^uint64(0)})
	Check("pingpong", <-done, 0)
	return rounds * 2
}

func ring[R any](a Actors[R], ops uint64) uint64 {
	done := make(chan uint64)
	members := make([]R, RingLen)
	for i := range members {
		index := uint64(i)
		members[i] = a.Spawn(func(self R, message any) {
			m, ok := message.(*number)
			if !ok {
				return
			}
			if m.value > 0 {
				a.Send(members[(index+1)%RingLen], &number{m.value - 1})
			} else {
				done <- index
			}
		})
	}
	a.Send(members[0], &number{ops})
	Check("ring", <-done, ops%RingLen)
	return ops
}

func produce[R any](a Actors[R], producers, rounds uint64) uint64 {
	total := producers * rounds
	done := make(chan uint64)
	counted := uint64(0)
	sink := a.Spawn(func(self R, message any) {
		if _, ok := message.(*number); !ok {
			return
		}
		counted++
		if counted == total {
			done <- counted
		}
	})
	for p := uint64(0); p < producers; p++ {
		producer := a.Spawn(func(self R, message any) {
			if _, ok := message.(*start); !ok {
				return
			}
			for i := uint64(0); i < rounds; i++ {
				a.Send(sink, &number{i})
			}
			a.Stop(self)
		})
		a.Send(producer, theStart)
	}
	Check("producers", <-done, total)
	return total
}

func forkjoin[R any](a Actors[R], ops uint64) uint64 {
	rounds := Share(ops, ForkjoinLen)
	done := make(chan uint64, ForkjoinLen)
	members := make([]R, ForkjoinLen)
	for i := range members {
		counted := uint64(0)
		members[i] = a.Spawn(func(self R, message any) {
			if _, ok := message.(*start); !ok {
				return
			}
			counted++
			if counted == rounds {
				done <- counted
				a.Stop(self)
			}
		})
	}
	driver := a.Spawn(func(self R, message any) {
		if _, ok := message.(*start); !ok {
			return
		}
		for j := uint64(0); j < rounds; j++ {
			for _, member := range members {
				a.Send(member, theStart)
			}
		}
		a.Stop(self)
	})
	a.Send(driver, theStart)
	for range members {
		Check("forkjoin", <-done, rounds)
	}
	return ForkjoinLen * rounds
}

func create[R any](a Actors[R], ops uint64) uint64 {
	var reached atomic.Uint64
	done := make(chan struct{})
	once := func(self R, message any) {
		if _, ok := message.(*start); !ok {
			return
		}
		a.Stop(self)
		if reached.Add(1) == ops {
			close(done)
		}
	}
	creator := a.Spawn(func(self R, message any) {
		if _, ok := message.(*start); !ok {
			return
		}
		for i := uint64(0); i < ops; i++ {
			a.Send(a.Spawn(once), theStart)
		}
		a.Stop(self)
	})
	a.Send(creator, theStart)
	<-done
	return ops
}

// skynetNode spawns a node which sends the sum of its leaves to up.
func skynetNode[R any](a Actors[R], up func(sum uint64), first, size uint64) {
	sum, left := uint64(0), SkynetFanout
	node := a.Spawn(func(self R, message any) {
		switch m := message.(type) {
		case *start:
			if size == 1 {
				up(first)
				a.Stop(self)
				return
			}
			part := size / SkynetFanout
			sendUp := func(sum uint64) { a.Send(self, &number{sum}) }
			for i := uint64(0); i < SkynetFanout; i++ {
				skynetNode(a, sendUp, first+i*part, part)
			}
		case *number:
			sum += m.value
			left--
			if left == 0 {
				up(sum)
				a.Stop(self)
			}
		}
	})
	a.Send(node, theStart)
}

func skynet[R any](a Actors[R], ops uint64) uint64 {
	leaves := SkynetLeaves(ops)
	done := make(chan uint64, 1)
	skynetNode(a, func(sum uint64) { done <- sum }, 0, leaves)
	Check("skynet", <-done, leaves*(leaves-1)/2)
	return SkynetActors(leaves)
}

func big[R any](a Actors[R], ops uint64) uint64 {
	rounds := Share(ops, BigLen*2)
	done := make(chan uint64, BigLen)
	members := make([]R, BigLen)
	for i := range members {
		left, random := rounds, Seed(uint64(i))
		members[i] = a.Spawn(func(self R, message any) {
			switch m := message.(type) {
			case *ping:
				a.Send(m.from.(R), theStart)
			case *start: // the beginning, and every answer
				if left > 0 {
					left--
					a.Send(members[Xorshift(&random)%BigLen], &ping{0, self})
				} else {
					done <- left
				}
			}
		})
	}
	for _, member := range members {
		a.Send(member, theStart)
	}
	for range members {
		Check("big", <-done, 0)
	}
	return BigLen * rounds * 2
}
