// SPDX-License-Identifier: MIT OR Apache-2.0
package interop;

import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorIdentity;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.DeadLetter;
import org.apache.pekko.actor.Dropped;
import org.apache.pekko.actor.Identify;
import org.apache.pekko.actor.Props;
import org.apache.pekko.actor.Terminated;
import org.apache.pekko.remote.artery.GracefulShutdownQuarantinedEvent;
import org.apache.pekko.remote.artery.QuarantinedEvent;
import org.apache.pekko.remote.artery.ThisActorSystemQuarantinedEvent;

/** Sends and watches in the name of the script, and reports all that comes back. */
final class Probe extends AbstractActor {
    record Tell(String path, Object message) {}

    record Select(String path, Object message) {}

    record Ask(String id, String path) {}

    record Watch(String path, boolean on) {}

    private final Names names;

    private Probe(Names names) {
        this.names = names;
    }

    static Props props(Names names) {
        return Props.create(Probe.class, () -> new Probe(names));
    }

    @Override
    public void preStart() {
        var stream = getContext().getSystem().getEventStream();
        stream.subscribe(getSelf(), QuarantinedEvent.class);
        stream.subscribe(getSelf(), GracefulShutdownQuarantinedEvent.class);
        stream.subscribe(getSelf(), ThisActorSystemQuarantinedEvent.class);
        stream.subscribe(getSelf(), DeadLetter.class);
        stream.subscribe(getSelf(), Dropped.class);
    }

    @Override
    public Receive createReceive() {
        return receiveBuilder()
                .match(Tell.class, t -> names.resolve(t.path()).tell(t.message(), getSelf()))
                .match(Select.class, s -> select(s.path(), s.message()))
                .match(Ask.class, a -> select(a.path(), new Identify(a.id())))
                .match(Watch.class, this::watch)
                .match(ActorIdentity.class, this::identity)
                .match(Terminated.class, this::terminated)
                .match(DeadLetter.class, d -> lost("dead letter", d.message(), d.recipient()))
                .match(Dropped.class, d -> lost(d.reason(), d.message(), d.recipient()))
                .match(QuarantinedEvent.class, this::remoting)
                .match(GracefulShutdownQuarantinedEvent.class, this::remoting)
                .match(ThisActorSystemQuarantinedEvent.class, this::remoting)
                .matchAny(this::received)
                .build();
    }

    private void select(String path, Object message) {
        getContext().actorSelection(path).tell(message, getSelf());
    }

    private void watch(Watch w) {
        ActorRef ref = names.resolve(w.path());
        if (w.on()) {
            getContext().watch(ref);
        } else {
            getContext().unwatch(ref);
        }
    }

    private void identity(ActorIdentity i) {
        String ref = i.getActorRef().map(names::text).orElse(null);
        new Event("identity").with("id", i.correlationId().toString()).with("ref", ref).print();
    }

    private void terminated(Terminated t) {
        new Event("terminated")
                .with("ref", names.text(t.getActor()))
                .with("existence_confirmed", t.getExistenceConfirmed())
                .with("address_terminated", t.getAddressTerminated())
                .print();
    }

    private void lost(String why, Object message, ActorRef recipient) {
        new Event("dead_letter")
                .with("why", why)
                .with("type", Payload.type(message))
                .with("value", Payload.value(names, message))
                .with("to", names.text(recipient))
                .print();
    }

    /** "quarantined", "this_actor_system_quarantined", ... */
    private void remoting(Object e) {
        String name = e.getClass().getSimpleName().replaceAll("Event$", "");
        name = name.replaceAll("(?<=[a-z])(?=[A-Z])", "_").toLowerCase();
        new Event(name).with("text", e.toString()).print();
    }

    private void received(Object message) {
        new Event("received")
                .with("type", Payload.type(message))
                .with("value", Payload.value(names, message))
                .with("sender", names.text(getSender()))
                .print();
    }
}
