// SPDX-License-Identifier: MIT OR Apache-2.0

// The workloads on Proto.Actor with its defaults, except that it logs nothing.
package main

import (
	"io"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"gobench"
)

func connect() gobench.Actors[*actor.PID] {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	system := actor.NewActorSystem(actor.WithLoggerFactory(
		func(*actor.ActorSystem) *slog.Logger { return quiet }))
	root := system.Root
	return gobench.Actors[*actor.PID]{
		Spawn: func(receive func(self *actor.PID, message any)) *actor.PID {
			return root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				receive(ctx.Self(), ctx.Message())
			}))
		},
		Send: func(to *actor.PID, message any) { root.Send(to, message) },
		Stop: func(self *actor.PID) { root.Stop(self) },
	}
}

func main() {
	gobench.Main("protoactor", gobench.ActorWorkloads(connect))
}
