// SPDX-License-Identifier: MIT OR Apache-2.0
package interop;

import java.util.HexFormat;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.Kill;
import org.apache.pekko.actor.PoisonPill;

/** Messages as a type and a text: what both sides of the line protocol can name. */
final class Payload {
    private Payload() {}

    static Object parse(Names names, String type, String value) {
        return switch (type) {
            case "string" -> value;
            case "bytes" -> HexFormat.of().parseHex(value);
            case "int" -> Integer.valueOf(value);
            case "long" -> Long.valueOf(value);
            case "bool" -> Boolean.valueOf(value);
            case "ref" -> names.resolve(value);
            case "poison" -> PoisonPill.getInstance();
            case "kill" -> Kill.getInstance();
            default -> throw new IllegalArgumentException("no such type: " + type);
        };
    }

    static String type(Object message) {
        if (message instanceof String) return "string";
        if (message instanceof byte[]) return "bytes";
        if (message instanceof Integer) return "int";
        if (message instanceof Long) return "long";
        if (message instanceof Boolean) return "bool";
        if (message instanceof ActorRef) return "ref";
        return message.getClass().getName();
    }

    static String value(Names names, Object message) {
        if (message instanceof byte[] bytes) return HexFormat.of().formatHex(bytes);
        if (message instanceof ActorRef ref) return names.text(ref);
        return message.toString();
    }
}
