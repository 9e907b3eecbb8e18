// SPDX-License-Identifier: MIT OR Apache-2.0
package peerbench;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.actor.UntypedAbstractActor;
import org.apache.pekko.pattern.Patterns;

/**
 * The remote workloads on Apache Pekko: classic actors of two processes by Artery TCP. A message is
 * a byte array of 64 bytes that begins with its number; acknowledgements are longs.
 *
 * <p>As with the other workloads, several runs in the same two processes come first and are thrown
 * away, and the median of the later ones is reported. Artery's queue of messages to be sent gets
 * more room than by default (3072), so that the window fits into it.
 */
public final class Remote {
    private static final int WARM_UPS = 2;
    private static final int RUNS = 3;
    private static final int PAYLOAD = 64;
    private static final int WINDOW = 8192;
    private static final int ACK = 2048;
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final long NANOS_PER_TICK = 10_000_000;

    private final ActorSystem system;
    private Process second;
    private ActorRef server;

    private Remote(int threads) {
        system = ActorSystem.create("first", config(threads));
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 2 && args[0].equals("serve")) {
            serve(Integer.parseInt(args[1]));
            return;
        }
        boolean hasOps = args.length == 4 && args[2].equals("--ops");
        if (args.length != 2 && !hasOps) {
            System.err.println("usage: Remote WORKLOAD THREADS [--ops N]");
            System.exit(2);
        }
        boolean asks = args[0].equals("remote-ask");
        if (!asks && !args[0].equals("remote-oneway")) {
            Main.fail(args[0] + ": unknown workload");
        }
        int ops = hasOps ? Integer.parseInt(args[3]) : asks ? 1_500 : 150_000;
        try {
            new Remote(Integer.parseInt(args[1])).measure(args[0], args[1], asks, ops);
        } catch (Exception error) {
            Main.fail(args[0] + ": " + error);
        }
        Runtime.getRuntime().halt(0); // the other process ends with this one
    }

    private static byte[] payload(long number) {
        return ByteBuffer.allocate(PAYLOAD).putLong(number).array();
    }

    private static long number(Object message) {
        byte[] bytes = (byte[]) message;
        return bytes.length == PAYLOAD ? ByteBuffer.wrap(bytes).getLong() : -1;
    }

    private static Config config(int threads) {
        return ConfigFactory.parseString(String.join("\n",
                "pekko.actor.provider = remote",
                "pekko.remote.artery.transport = tcp",
                "pekko.remote.artery.canonical.hostname = 127.0.0.1",
                "pekko.remote.artery.canonical.port = 0",
                "pekko.remote.artery.advanced.outbound-message-queue-size = " + 2 * WINDOW))
                .withFallback(Main.config(threads));
    }

    // The second process.

    /** Answers a string with itself, counts numbered arrays in order, and echoes in between. */
    private static final class Server extends UntypedAbstractActor {
        private long next;
        private long ops;

        @Override
        public void onReceive(Object message) {
            if (message instanceof Long) { // so many are to be counted; 0: asked for an echo
                ops = (Long) message;
                next = 0;
                getSender().tell(message, getSelf());
            } else if (ops == 0) {
                getSender().tell(message, getSelf());
            } else {
                count(number(message));
            }
        }

        private void count(long number) {
            if (number != next) {
                getSender().tell(-1L, getSelf());
            }
            next++;
            if (next == ops || next % ACK == 0) {
                getSender().tell(next, getSelf());
            }
        }
    }

    private static void serve(int threads) throws IOException {
        ActorSystem system = ActorSystem.create("second", config(threads));
        ActorRef actor = system.actorOf(Props.create(Server.class, Server::new), "server");
        System.out.println(actor.path().toStringWithAddress(
                system.provider().getDefaultAddress()));
        System.out.flush();
        while (System.in.read() >= 0) {
            continue; // until the first process is gone
        }
        Runtime.getRuntime().halt(0);
    }

    // The first process.

    /** Sends numbered arrays, a window at a time. */
    private static final class Source extends UntypedAbstractActor {
        private final ActorRef server;
        private final long ops;
        private final CountDownLatch done;
        private long sent;

        Source(ActorRef server, long ops, CountDownLatch done) {
            this.server = server;
            this.ops = ops;
            this.done = done;
        }

        @Override
        public void onReceive(Object message) {
            long acknowledged = (Long) message;
            if (acknowledged < 0) {
                Main.fail("remote-oneway: out of order");
            }
            if (acknowledged == ops) {
                done.countDown();
            }
            while (sent < ops && sent - acknowledged < WINDOW) {
                server.tell(payload(sent), getSelf());
                sent++;
            }
        }
    }

    private void start(String threads) throws Exception {
        String java = ProcessHandle.current().info().command().orElse("java");
        second = new ProcessBuilder(java, "-Xms512m", "-XX:+UseParallelGC", "-cp",
                System.getProperty("java.class.path"), "peerbench.Remote", "serve", threads)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader out = new BufferedReader(
                new InputStreamReader(second.getInputStream(), StandardCharsets.UTF_8));
        String path = out.readLine();
        server = system.actorSelection(path).resolveOne(PATIENCE).toCompletableFuture().get();
    }

    private Object ask(Object message) throws Exception {
        return Patterns.ask(server, message, PATIENCE).toCompletableFuture().get();
    }

    private void runOneway(long ops) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        ActorRef source = system.actorOf(
                Props.create(Source.class, () -> new Source(server, ops, done)));
        source.tell(0L, ActorRef.noSender());
        done.await();
        system.stop(source);
    }

    private void runAsk(long[] trips) throws Exception {
        for (int i = 0; i < trips.length; i++) {
            long asked = System.nanoTime();
            if (number(ask(payload(i))) != i) {
                Main.fail("remote-ask: another answer");
            }
            trips[i] = System.nanoTime() - asked;
        }
    }

    /** User and system time of both processes. */
    private long cpuNanos() throws IOException {
        long ticks = 0;
        for (long pid : new long[] {ProcessHandle.current().pid(), second.pid()}) {
            String text = Files.readString(Path.of("/proc/" + pid + "/stat"));
            String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ");
            ticks += Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
        }
        return ticks * NANOS_PER_TICK;
    }

    private static final class Sample {
        private double seconds;
        private long cpuNanos;
        private long[] trips;
    }

    private Sample runOnce(boolean asks, int ops) throws Exception {
        Sample sample = new Sample();
        sample.trips = new long[asks ? ops : 0];
        ask(asks ? 0L : (long) ops);
        long cpu = cpuNanos();
        long start = System.nanoTime();
        if (asks) {
            runAsk(sample.trips);
        } else {
            runOneway(ops);
        }
        sample.seconds = (System.nanoTime() - start) / 1e9;
        sample.cpuNanos = cpuNanos() - cpu;
        Arrays.sort(sample.trips);
        return sample;
    }

    private void measure(String workload, String threads, boolean asks, int ops) throws Exception {
        start(threads);
        Sample[] samples = new Sample[RUNS];
        for (int run = -WARM_UPS; run < RUNS; run++) {
            Sample sample = runOnce(asks, ops);
            if (run >= 0) {
                samples[run] = sample;
            }
        }
        Arrays.sort(samples, (a, b) -> Double.compare(a.seconds, b.seconds));
        Sample median = samples[RUNS / 2];
        String tails = !asks ? "" : String.format(Locale.ROOT, ",\"p50_us\":%.1f,\"p99_us\":%.1f",
                median.trips[ops / 2] / 1e3, median.trips[ops - 1 - ops / 100] / 1e3);
        System.out.printf(Locale.ROOT,
                "{\"runtime\":\"pekko\",\"workload\":\"%s\",\"threads\":%s,\"ops\":%d,"
                        + "\"seconds\":%.6f,\"ops_per_s\":%.0f,\"cpu_ns_per_op\":%.1f%s}%n",
                workload, threads, ops, median.seconds, ops / median.seconds,
                (double) median.cpuNanos / ops, tails);
        System.out.flush();
    }
}
