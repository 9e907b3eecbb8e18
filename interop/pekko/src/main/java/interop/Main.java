// SPDX-License-Identifier: MIT OR Apache-2.0
package interop;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Address;
import org.apache.pekko.actor.AddressFromURIString;
import org.apache.pekko.actor.ExtendedActorSystem;
import org.apache.pekko.pattern.Patterns;
import org.apache.pekko.remote.RARP;
import org.apache.pekko.remote.RemoteActorRefProvider;
import org.apache.pekko.remote.artery.ArteryTransport;

/**
 * A Pekko node that a script drives: commands come by standard input, events go by standard output,
 * one a line. interop/README.md has both.
 */
public final class Main {
    private final ExtendedActorSystem system;
    private final RemoteActorRefProvider provider;
    private final Names names;
    private final ActorRef probe;
    private final Map<String, ActorRef> actors = new HashMap<>();

    private Main(ExtendedActorSystem system) {
        this.system = system;
        this.provider = ((RARP) RARP.get(system)).provider();
        this.names = new Names(system);
        this.probe = system.actorOf(Probe.props(names), "probe");
        for (String kind : new String[] {"echo", "sink", "forward", "caller", "giver", "pool"}) {
            spawn(kind, kind);
        }
        aim("/user/echo");
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) options.put(arguments[i], arguments[i + 1]);
        String name = options.getOrDefault("--name", "P");
        Main main = new Main((ExtendedActorSystem) ActorSystem.create(name, config(options)));
        main.ready();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) main.command(line);
        main.exit();
    }

    /**
     * The detector waits less than usual, and quarantined streams end at once: tests are to be
     * short. With --bind others reach us at another port than the one that we listen on.
     */
    private static Config config(Map<String, String> options) {
        String port = options.getOrDefault("--port", "0");
        String magic = options.getOrDefault("--magic", "");
        String text =
                """
                pekko.loglevel = warning
                pekko.stdout-loglevel = warning
                pekko.loggers = ["interop.Logged"]
                pekko.log-dead-letters = off
                pekko.actor.provider = remote
                pekko.actor.allow-java-serialization = off
                pekko.remote.use-unsafe-remote-features-outside-cluster = on
                pekko.remote.warn-unsafe-watch-outside-cluster = off
                pekko.remote.warn-about-direct-use = off
                pekko.remote.watch-failure-detector.acceptable-heartbeat-pause = 2s
                pekko.remote.artery {
                  transport = tcp
                  canonical.hostname = "127.0.0.1"
                  canonical.port = %s
                  bind.hostname = "127.0.0.1"
                  bind.port = %s
                }
                """
                        .formatted(port, options.getOrDefault("--bind", port));
        if (!magic.isEmpty()) {
            text += "pekko.remote.artery.advanced.tcp-magic = [" + magic + "]\n";
        }
        if (options.containsKey("--compress")) {
            text += """
                    pekko.remote.artery.advanced.compression.actor-refs.advertisement-interval = %1$s
                    pekko.remote.artery.advanced.compression.manifests.advertisement-interval = %1$s
                    """.formatted(options.get("--compress"));
        }
        return ConfigFactory.parseString(text).withFallback(ConfigFactory.load());
    }

    private void ready() {
        long uid = ((ArteryTransport) provider.transport()).localAddress().uid();
        new Event("ready")
                .with("address", names.address().toString())
                .with("uid", Long.toUnsignedString(uid))
                .with("version", ActorSystem.Version())
                .print();
    }

    /** A command that cannot be done is an event, too; the script decides. */
    private void command(String line) {
        try {
            perform(line.split(" ", 2)[0], line);
        } catch (RuntimeException e) {
            new Event("error").with("command", line).with("text", e.toString()).print();
        }
    }

    private void perform(String verb, String line) {
        switch (verb) {
            case "tell" -> {
                String[] w = line.split(" ", 4);
                probe.tell(new Probe.Tell(w[1], payload(w, 2)), ActorRef.noSender());
            }
            case "send" -> {
                String[] w = line.split(" ", 4);
                names.resolve(w[1]).tell(payload(w, 2), ActorRef.noSender());
            }
            case "select" -> {
                String[] w = line.split(" ", 4);
                probe.tell(new Probe.Select(w[1], payload(w, 2)), ActorRef.noSender());
            }
            case "ask" -> {
                String[] w = line.split(" ", 5);
                ask(w[1], w[2], payload(w, 3));
            }
            case "identify" -> {
                String[] w = line.split(" ", 3);
                probe.tell(new Probe.Ask(w[1], w[2]), ActorRef.noSender());
            }
            case "watch", "unwatch" ->
                probe.tell(new Probe.Watch(line.split(" ")[1], verb.equals("watch")),
                        ActorRef.noSender());
            case "spawn" -> {
                String[] w = line.split(" ");
                spawn(w[1], w[2]);
                new Event("spawned").with("ref", names.text(actors.get(w[1]))).print();
            }
            case "stop" -> system.stop(actors.get(line.split(" ")[1]));
            case "aim" -> aim(line.split(" ")[1]);
            case "flood" -> system.actorOf(
                    Cast.Flood.props(names.resolve(line.split(" ")[1]),
                            Long.parseLong(line.split(" ")[2])));
            case "report" -> actors.get("sink").tell(Cast.Sink.Report.NOW, ActorRef.noSender());
            case "quarantine" -> quarantine(line.split(" ")[1], line.split(" ")[2]);
            case "exit" -> exit();
            default -> throw new IllegalArgumentException("no such command");
        }
    }

    /** The words from there on are a type and a value, which may be empty. */
    private Object payload(String[] words, int at) {
        return Payload.parse(names, words[at], words.length > at + 1 ? words[at + 1] : "");
    }

    private void spawn(String name, String kind) {
        actors.put(name, system.actorOf(Cast.of(kind), name));
    }

    private void aim(String path) {
        actors.get("forward").tell(new Cast.Forward.Aim(names.resolve(path)), ActorRef.noSender());
    }

    private void ask(String id, String path, Object message) {
        Patterns.ask(names.resolve(path), message, Duration.ofSeconds(3))
                .whenComplete((answer, error) -> {
                    Event event = new Event("answer").with("id", id);
                    if (error != null) {
                        event.with("error", error.getClass().getSimpleName()).print();
                        return;
                    }
                    event.with("type", Payload.type(answer))
                            .with("value", Payload.value(names, answer))
                            .print();
                });
    }

    private void quarantine(String address, String uid) {
        Address parsed = AddressFromURIString.parse(address);
        Object number = Long.parseUnsignedLong(uid);
        provider.quarantine(parsed, scala.Option.apply(number), "the script says so");
        new Event("done").with("command", "quarantine").print();
    }

    private void exit() {
        system.terminate();
        try {
            system.getWhenTerminated().toCompletableFuture().get();
        } catch (Exception e) {
            new Event("error").with("command", "exit").with("text", e.toString()).print();
        }
        new Event("exited").print();
        System.exit(0);
    }
}
