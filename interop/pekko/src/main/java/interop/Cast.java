// SPDX-License-Identifier: MIT OR Apache-2.0
package interop;

import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.Props;

/** The actors that the other side talks to. */
final class Cast {
    private Cast() {}

    static Props of(String kind) {
        return switch (kind) {
            case "echo" -> Props.create(Echo.class, Echo::new);
            case "sink" -> Props.create(Sink.class, Sink::new);
            case "forward" -> Props.create(Forward.class, Forward::new);
            case "caller" -> Props.create(Caller.class, Caller::new);
            case "giver" -> Props.create(Giver.class, Giver::new);
            case "pool" -> Props.create(Pool.class, Pool::new);
            default -> throw new IllegalArgumentException("no such kind: " + kind);
        };
    }

    /** Answers with what it got. */
    static final class Echo extends AbstractActor {
        @Override
        public Receive createReceive() {
            return receiveBuilder().matchAny(m -> getSender().tell(m, getSelf())).build();
        }
    }

    /** Passes everything on to its aim, in the name of whoever sent it. */
    static final class Forward extends AbstractActor {
        record Aim(ActorRef at) {}

        private ActorRef aim;

        @Override
        public Receive createReceive() {
            return receiveBuilder()
                    .match(Aim.class, a -> aim = a.at())
                    .matchAny(m -> aim.forward(m, getContext()))
                    .build();
        }
    }

    /** Calls whoever it is told of. */
    static final class Caller extends AbstractActor {
        @Override
        public Receive createReceive() {
            return receiveBuilder()
                    .match(ActorRef.class, ref -> ref.tell("called", getSelf()))
                    .build();
        }
    }

    /** Answers anything with a reference that nobody can know otherwise. */
    static final class Giver extends AbstractActor {
        private final ActorRef hidden = getContext().actorOf(Props.create(Echo.class, Echo::new));

        @Override
        public Receive createReceive() {
            return receiveBuilder().matchAny(m -> getSender().tell(hidden, getSelf())).build();
        }
    }

    /** Three of a kind, for wildcards. */
    static final class Pool extends AbstractActor {
        @Override
        public void preStart() {
            for (String name : new String[] {"w-1", "w-2", "w-3", "other"}) {
                getContext().actorOf(Props.create(Echo.class, Echo::new), name);
            }
        }

        @Override
        public Receive createReceive() {
            return receiveBuilder().build();
        }
    }

    /**
     * Counts numbered strings, "1" to "n": each must be the one after the last. Every 500th is
     * confirmed to its sender, so that a flood has no more on its way than queues hold.
     */
    static final class Sink extends AbstractActor {
        enum Report {
            NOW
        }

        private long count;
        private long last;
        private long wrong;

        @Override
        public Receive createReceive() {
            return receiveBuilder()
                    .match(String.class, this::take)
                    .matchEquals(Report.NOW, r -> report())
                    .build();
        }

        private void take(String text) {
            long number = Long.parseLong(text);
            count++;
            if (number != last + 1) wrong++;
            last = number;
            if (number % Flood.STEP == 0) getSender().tell(number, getSelf());
        }

        private void report() {
            new Event("sink").with("count", count).with("last", last).with("wrong", wrong).print();
            count = last = wrong = 0;
        }
    }

    /** Sends "1" to "n" to a sink, at most two steps ahead of what that has confirmed. */
    static final class Flood extends AbstractActor {
        static final long STEP = 500;

        private final ActorRef sink;
        private final long total;
        private long sent;

        Flood(ActorRef sink, long total) {
            this.sink = sink;
            this.total = total;
        }

        static Props props(ActorRef sink, long total) {
            return Props.create(Flood.class, () -> new Flood(sink, total));
        }

        @Override
        public void preStart() {
            send(2 * STEP);
        }

        @Override
        public Receive createReceive() {
            return receiveBuilder().match(Long.class, this::confirmed).build();
        }

        private void confirmed(long number) {
            if (number >= total) {
                new Event("flooded").with("count", sent).print();
                getContext().stop(getSelf());
                return;
            }
            send(number + 2 * STEP);
        }

        private void send(long upTo) {
            while (sent < Math.min(upTo, total)) {
                sent++;
                sink.tell(Long.toString(sent), getSelf());
            }
        }
    }
}
