// SPDX-License-Identifier: MIT OR Apache-2.0
package interop;

import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.Address;
import org.apache.pekko.actor.ExtendedActorSystem;

/** References as complete paths, and back. */
final class Names {
    private final ExtendedActorSystem system;

    Names(ExtendedActorSystem system) {
        this.system = system;
    }

    /** A path of this system may be short: "/user/echo". */
    ActorRef resolve(String path) {
        String full = path.startsWith("/") ? address() + path : path;
        return system.provider().resolveActorRef(full);
    }

    /** Null for nobody, whichever way Pekko says it. */
    String text(ActorRef ref) {
        if (ref == null || ref.equals(ActorRef.noSender()) || ref.equals(system.deadLetters())) {
            return null;
        }
        return ref.path().toSerializationFormatWithAddress(address());
    }

    Address address() {
        return system.provider().getDefaultAddress();
    }
}
