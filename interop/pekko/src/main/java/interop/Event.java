// SPDX-License-Identifier: MIT OR Apache-2.0
package interop;

/** What happened, as one line of JSON on standard output. */
final class Event {
    private final StringBuilder line = new StringBuilder("{");

    Event(String name) {
        with("event", name);
    }

    Event with(String key, String value) {
        name(key);
        if (value == null) {
            line.append("null");
            return this;
        }
        quote(value);
        return this;
    }

    Event with(String key, long value) {
        name(key);
        line.append(value);
        return this;
    }

    Event with(String key, boolean value) {
        name(key);
        line.append(value);
        return this;
    }

    /** Whole lines only, whichever threads print. */
    void print() {
        String text = line.append('}').toString();
        synchronized (System.out) {
            System.out.println(text);
            System.out.flush();
        }
    }

    private void name(String key) {
        if (line.length() > 1) line.append(',');
        quote(key);
        line.append(':');
    }

    private void quote(String text) {
        line.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                line.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                line.append(String.format("\\u%04x", (int) c));
            } else {
                line.append(c);
            }
        }
        line.append('"');
    }
}
