// SPDX-License-Identifier: MIT OR Apache-2.0
package interop;

import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.event.Logging;

/** Warnings and errors of Pekko are events like all others. */
public final class Logged extends AbstractActor {
    @Override
    public Receive createReceive() {
        return receiveBuilder()
                .match(Logging.InitializeLogger.class,
                        m -> getSender().tell(Logging.loggerInitialized(), getSelf()))
                .match(Logging.Error.class, e -> print("error", e))
                .match(Logging.Warning.class, e -> print("warning", e))
                .matchAny(m -> {})
                .build();
    }

    private static void print(String level, Logging.LogEvent e) {
        new Event("log")
                .with("level", level)
                .with("source", e.logSource())
                .with("text", String.valueOf(e.message()))
                .print();
    }
}
