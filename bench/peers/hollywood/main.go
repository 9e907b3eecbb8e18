// SPDX-License-Identifier: MIT OR Apache-2.0

// The workloads on Hollywood. An inbox begins small, because a million of the default size would
// measure memory; it grows by itself.
package main

import (
	"io"
	"log/slog"

	"github.com/anthdm/hollywood/actor"

	"gobench"
)

const inboxLen = 16

func connect() gobench.Actors[*actor.PID] {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	engine, err := actor.NewEngine(actor.NewEngineConfig())
	if err != nil {
		gobench.Fail("engine: %v", err)
	}
	return gobench.Actors[*actor.PID]{
		Spawn: func(receive func(self *actor.PID, message any)) *actor.PID {
			return engine.SpawnFunc(func(ctx *actor.Context) {
				receive(ctx.PID(), ctx.Message())
			}, "bench", actor.WithInboxSize(inboxLen))
		},
		Send: func(to *actor.PID, message any) { engine.Send(to, message) },
		Stop: func(self *actor.PID) { engine.Stop(self) },
	}
}

func main() {
	gobench.Main("hollywood", gobench.ActorWorkloads(connect))
}
