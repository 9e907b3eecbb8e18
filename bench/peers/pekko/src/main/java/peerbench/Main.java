// SPDX-License-Identifier: MIT OR Apache-2.0
package peerbench;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.LongUnaryOperator;
import org.apache.pekko.actor.ActorSystem;

/**
 * The workloads on Apache Pekko, classic actors, on a fork-join dispatcher of fixed size.
 *
 * <p>A virtual machine that has just started interprets. So the workload runs several times in one
 * process, and the median of the later runs is reported.
 */
public final class Main {
    private static final int WARM_UPS = 3;
    private static final int RUNS = 3;
    private static final int STOP_SECONDS = 10;

    private Main() {}

    public static void main(String[] args) {
        boolean hasOps = args.length == 4 && args[2].equals("--ops");
        if (args.length != 2 && !hasOps) {
            System.err.println("usage: Main WORKLOAD THREADS [--ops N]");
            System.exit(2);
        }
        int threads = Integer.parseInt(args[1]);
        long ops = hasOps ? Long.parseLong(args[3]) : defaultOps(args[0]);
        long done = 0;
        double[] seconds = new double[RUNS];
        for (int run = -WARM_UPS; run < RUNS; run++) {
            ActorSystem system = ActorSystem.create("bench", config(threads));
            LongUnaryOperator workload = new Workloads(system).named(args[0]);
            if (workload == null) {
                fail(args[0] + ": unknown workload");
            }
            long start = System.nanoTime();
            done = workload.applyAsLong(ops);
            if (run >= 0) {
                seconds[run] = (System.nanoTime() - start) / 1e9;
            }
            stop(system);
        }
        Arrays.sort(seconds);
        double median = seconds[RUNS / 2];
        System.out.printf(Locale.ROOT,
                "{\"runtime\":\"pekko\",\"workload\":\"%s\",\"threads\":%d,\"ops\":%d,"
                        + "\"seconds\":%.6f,\"ops_per_s\":%.0f}%n",
                args[0], threads, done, median, done / median);
        System.out.flush();
        Runtime.getRuntime().halt(0); // the actor system need not say goodbye
    }

    /** The next run should not compete with the end of this one, which is not measured. */
    private static void stop(ActorSystem system) {
        system.terminate();
        try {
            system.getWhenTerminated().toCompletableFuture().get(STOP_SECONDS, TimeUnit.SECONDS);
        } catch (Exception late) {
            System.err.println("the actor system is slow to stop: " + late);
        }
    }

    static void fail(String why) {
        System.err.println("FAIL " + why);
        Runtime.getRuntime().halt(1);
    }

    private static long defaultOps(String workload) {
        switch (workload) {
            case "count":
                return 10_000_000;
            case "fanin":
            case "big":
                return 8_000_000;
            case "pingpong":
            case "forkjoin":
                return 6_000_000;
            case "ring":
                return 5_000_000;
            case "skynet":
                return 1_111_111;
            default:
                return 1_000_000;
        }
    }

    /** A pool of fixed size and 100 messages per turn; the mailbox is Pekko's default. */
    static Config config(int threads) {
        return ConfigFactory.parseString(String.join("\n",
                "pekko.loglevel = OFF",
                "pekko.stdout-loglevel = OFF",
                "pekko.log-dead-letters = off",
                "pekko.log-dead-letters-during-shutdown = off",
                "pekko.actor.default-dispatcher {",
                "  executor = fork-join-executor",
                "  throughput = 100",
                "  fork-join-executor.parallelism-min = " + threads,
                "  fork-join-executor.parallelism-max = " + threads,
                "  fork-join-executor.parallelism-factor = 1.0",
                "}")).withFallback(ConfigFactory.load());
    }
}
