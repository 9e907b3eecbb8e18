// SPDX-License-Identifier: MIT OR Apache-2.0
package peerbench;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import java.util.function.Supplier;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.actor.UntypedAbstractActor;

/** Each workload runs once, checks its result and returns how many operations it really did. */
final class Workloads {
    private static final int RING_LEN = 503;
    private static final int PRODUCERS = 8;
    private static final int FORKJOIN_LEN = 60;
    private static final int BIG_LEN = 200;
    private static final int SKYNET_FANOUT = 10;

    /** Messages without content are shared. */
    private static final Object GO = new Object();
    private static final Object PING = new Object();
    private static final Object PONG = new Object();

    private final ActorSystem system;

    Workloads(ActorSystem system) {
        this.system = system;
    }

    LongUnaryOperator named(String name) {
        switch (name) {
            case "pingpong":
                return this::pingpong;
            case "ring":
                return this::ring;
            case "count":
                return ops -> produce(1, ops);
            case "fanin":
                return ops -> produce(PRODUCERS, share(ops, PRODUCERS));
            case "forkjoin":
                return this::forkjoin;
            case "create":
                return this::create;
            case "skynet":
                return this::skynet;
            case "big":
                return this::big;
            default:
                return null;
        }
    }

    /** What actors leave behind for the main thread: a number each, which must all be the same. */
    private static final class Result {
        private final CountDownLatch missing;
        private final AtomicLong sum = new AtomicLong();
        private final int parts;

        Result(int parts) {
            this.parts = parts;
            missing = new CountDownLatch(parts);
        }

        void put(long found) {
            sum.addAndGet(found);
            missing.countDown();
        }

        void check(String what, long want) {
            try {
                missing.await();
            } catch (InterruptedException stopped) {
                throw new IllegalStateException(stopped);
            }
            if (sum.get() != want * parts) {
                Main.fail(what + ": got " + sum.get() + ", want " + want * parts);
            }
        }
    }

    private static Props props(Supplier<? extends UntypedAbstractActor> make) {
        return Props.create(UntypedAbstractActor.class, make::get);
    }

    /** How often one of parts actors repeats its step; never 0. */
    private static long share(long ops, long parts) {
        return Math.max(ops / parts, 1);
    }

    // Pingpong.

    private static final class Pong extends UntypedAbstractActor {
        @Override
        public void onReceive(Object message) {
            getSender().tell(message, getSelf());
        }
    }

    private static final class Ping extends UntypedAbstractActor {
        private final ActorRef pong;
        private final Result result;
        private long left;

        Ping(ActorRef pong, long rounds, Result result) {
            this.pong = pong;
            this.left = rounds;
            this.result = result;
        }

        @Override
        public void onReceive(Object message) {
            if (left > 0) {
                left--;
                pong.tell(left, getSelf());
            } else {
                result.put((Long) message);
            }
        }
    }

    private long pingpong(long ops) {
        long rounds = share(ops, 2);
        Result result = new Result(1);
        ActorRef pong = system.actorOf(props(Pong::new));
        ActorRef ping = system.actorOf(props(() -> new Ping(pong, rounds, result)));
        ping.tell(Long.MAX_VALUE, ActorRef.noSender());
        result.check("pingpong", 0);
        return rounds * 2;
    }

    // Ring.

    private static final class RingMember extends UntypedAbstractActor {
        private final ActorRef[] members;
        private final int index;
        private final Result result;

        RingMember(ActorRef[] members, int index, Result result) {
            this.members = members;
            this.index = index;
            this.result = result;
        }

        @Override
        public void onReceive(Object message) {
            long hops = (Long) message;
            if (hops > 0) {
                members[(index + 1) % RING_LEN].tell(hops - 1, getSelf());
            } else {
                result.put(index);
            }
        }
    }

    private long ring(long ops) {
        Result result = new Result(1);
        ActorRef[] members = new ActorRef[RING_LEN];
        for (int i = 0; i < RING_LEN; i++) {
            int index = i;
            members[i] = system.actorOf(props(() -> new RingMember(members, index, result)));
        }
        members[0].tell(ops, ActorRef.noSender());
        result.check("ring", ops % RING_LEN);
        return ops;
    }

    // Count and fanin.

    private static final class Counter extends UntypedAbstractActor {
        private final long total;
        private final Result result;
        private long counted;

        Counter(long total, Result result) {
            this.total = total;
            this.result = result;
        }

        @Override
        public void onReceive(Object message) {
            if (++counted == total) {
                result.put(counted);
            }
        }
    }

    private static final class Producer extends UntypedAbstractActor {
        private final ActorRef sink;
        private final long rounds;

        Producer(ActorRef sink, long rounds) {
            this.sink = sink;
            this.rounds = rounds;
        }

        @Override
        public void onReceive(Object message) {
            for (long i = 0; i < rounds; i++) {
                sink.tell(i, getSelf());
            }
            getContext().stop(getSelf());
        }
    }

    private long produce(int producers, long rounds) {
        long total = producers * rounds;
        Result result = new Result(1);
        ActorRef sink = system.actorOf(props(() -> new Counter(total, result)));
        for (int i = 0; i < producers; i++) {
            system.actorOf(props(() -> new Producer(sink, rounds))).tell(GO, ActorRef.noSender());
        }
        result.check("producers", total);
        return total;
    }

    // Forkjoin.

    private static final class ForkjoinMember extends UntypedAbstractActor {
        private final long rounds;
        private final Result result;
        private long counted;

        ForkjoinMember(long rounds, Result result) {
            this.rounds = rounds;
            this.result = result;
        }

        @Override
        public void onReceive(Object message) {
            if (++counted == rounds) {
                result.put(counted);
                getContext().stop(getSelf());
            }
        }
    }

    private static final class ForkjoinDriver extends UntypedAbstractActor {
        private final ActorRef[] members;
        private final long rounds;

        ForkjoinDriver(ActorRef[] members, long rounds) {
            this.members = members;
            this.rounds = rounds;
        }

        @Override
        public void onReceive(Object message) {
            for (long j = 0; j < rounds; j++) {
                for (ActorRef member : members) {
                    member.tell(GO, getSelf());
                }
            }
            getContext().stop(getSelf());
        }
    }

    private long forkjoin(long ops) {
        long rounds = share(ops, FORKJOIN_LEN);
        Result result = new Result(FORKJOIN_LEN);
        ActorRef[] members = new ActorRef[FORKJOIN_LEN];
        for (int i = 0; i < FORKJOIN_LEN; i++) {
            members[i] = system.actorOf(props(() -> new ForkjoinMember(rounds, result)));
        }
        system.actorOf(props(() -> new ForkjoinDriver(members, rounds)))
                .tell(GO, ActorRef.noSender());
        result.check("forkjoin", rounds);
        return FORKJOIN_LEN * rounds;
    }

    // Create.

    private static final class Once extends UntypedAbstractActor {
        private final AtomicLong reached;
        private final long total;
        private final Result result;

        Once(AtomicLong reached, long total, Result result) {
            this.reached = reached;
            this.total = total;
            this.result = result;
        }

        @Override
        public void onReceive(Object message) {
            getContext().stop(getSelf());
            if (reached.incrementAndGet() == total) {
                result.put(total);
            }
        }
    }

    private static final class Creator extends UntypedAbstractActor {
        private final long total;
        private final Result result;

        Creator(long total, Result result) {
            this.total = total;
            this.result = result;
        }

        @Override
        public void onReceive(Object message) {
            AtomicLong reached = new AtomicLong();
            Props once = props(() -> new Once(reached, total, result));
            for (long i = 0; i < total; i++) {
                getContext().actorOf(once).tell(GO, getSelf());
            }
        }
    }

    private long create(long ops) {
        Result result = new Result(1);
        system.actorOf(props(() -> new Creator(ops, result))).tell(GO, ActorRef.noSender());
        result.check("create", ops);
        return ops;
    }

    // Skynet.

    /** A node adds what its children send; a node without parent leaves the sum as the result. */
    private static final class SkynetNode extends UntypedAbstractActor {
        private final ActorRef parent;
        private final long first;
        private final long size;
        private final Result result;
        private int left = SKYNET_FANOUT;
        private long sum;

        SkynetNode(ActorRef parent, long first, long size, Result result) {
            this.parent = parent;
            this.first = first;
            this.size = size;
            this.result = result;
        }

        @Override
        public void preStart() {
            if (size == 1) {
                reportUp(first);
                return;
            }
            long part = size / SKYNET_FANOUT;
            ActorRef self = getSelf();
            for (int i = 0; i < SKYNET_FANOUT; i++) {
                long from = first + i * part;
                getContext().actorOf(props(() -> new SkynetNode(self, from, part, result)));
            }
        }

        @Override
        public void onReceive(Object message) {
            sum += (Long) message;
            if (--left == 0) {
                reportUp(sum);
            }
        }

        private void reportUp(long value) {
            if (parent != null) {
                parent.tell(value, getSelf());
            } else {
                result.put(value);
            }
            getContext().stop(getSelf());
        }
    }

    private static long skynetActors(long leaves) {
        return leaves == 0 ? 0 : leaves + skynetActors(leaves / SKYNET_FANOUT);
    }

    private long skynet(long ops) {
        long leaves = SKYNET_FANOUT;
        while (skynetActors(leaves * SKYNET_FANOUT) <= ops) {
            leaves *= SKYNET_FANOUT;
        }
        long size = leaves;
        Result result = new Result(1);
        system.actorOf(props(() -> new SkynetNode(null, 0, size, result)));
        result.check("skynet", leaves * (leaves - 1) / 2);
        return skynetActors(leaves);
    }

    // Big.

    private static final class BigMember extends UntypedAbstractActor {
        private final ActorRef[] members;
        private final Result result;
        private long left;
        private long random;

        BigMember(ActorRef[] members, int index, long rounds, Result result) {
            this.members = members;
            this.left = rounds;
            this.result = result;
            this.random = 88172645463325252L ^ ((index + 1) * 0x9E3779B97F4A7C15L);
        }

        @Override
        public void onReceive(Object message) {
            if (message == PING) {
                getSender().tell(PONG, getSelf());
            } else if (left > 0) { // PONG, or GO at the beginning
                left--;
                random ^= random << 13;
                random ^= random >>> 7;
                random ^= random << 17;
                int other = (int) Long.remainderUnsigned(random, BIG_LEN);
                members[other].tell(PING, getSelf());
            } else {
                result.put(left);
            }
        }
    }

    private long big(long ops) {
        long rounds = share(ops, BIG_LEN * 2);
        Result result = new Result(BIG_LEN);
        ActorRef[] members = new ActorRef[BIG_LEN];
        for (int i = 0; i < BIG_LEN; i++) {
            int index = i;
            members[i] = system.actorOf(props(() -> new BigMember(members, index, rounds, result)));
        }
        for (ActorRef member : members) {
            member.tell(GO, ActorRef.noSender());
        }
        result.check("big", 0);
        return BIG_LEN * rounds * 2;
    }
}
