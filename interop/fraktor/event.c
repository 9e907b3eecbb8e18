/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "event.h"

#include <inttypes.h>
#include <stdio.h>

enum { PATH_SIZE = 2048 };

/* UTF-8 may stay as it is. */
static void quote(fk_str text)
{
    putchar_unlocked('"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\') putchar_unlocked('\\');
        if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar_unlocked(c);
        }
    }
    putchar_unlocked('"');
}

static void key_of(const char *key)
{
    printf(",\"%s\":", key);
}

void event_begin(const char *name)
{
    flockfile(stdout);
    printf("{\"event\":\"%s\"", name);
}

void event_text(const char *key, fk_str text)
{
    key_of(key);
    quote(text);
}

void event_number(const char *key, int64_t number)
{
    key_of(key);
    printf("%" PRId64, number);
}

void event_truth(const char *key, bool truth)
{
    key_of(key);
    fputs(truth ? "true" : "false", stdout);
}

void event_ref(const char *key, fk_system *sys, fk_ref ref)
{
    char path[PATH_SIZE];
    size_t len = fk_ref_is_none(ref) ? 0 : fk_path_of(sys, ref, path, sizeof path);
    if (len > 0 && len < sizeof path) {
        event_text(key, (fk_str){ path, len });
        return;
    }
    key_of(key);
    fputs("null", stdout);
}

static void hex(const unsigned char *bytes, size_t len)
{
    putchar_unlocked('"');
    for (size_t i = 0; i < len; i++) printf("%02x", bytes[i]);
    putchar_unlocked('"');
}

/* Numbers are texts here, too: the protocol has one kind of value. */
static void number_text(const char *type, int64_t number)
{
    char text[24];
    event_text("type", fk_str_of(type));
    snprintf(text, sizeof text, "%" PRId64, number);
    event_text("value", fk_str_of(text));
}

void event_message(fk_system *sys, const fk_type *type, const void *data, size_t len)
{
    const fk_msg msg = { .type = type, .data = data, .len = len };
    const fk_int *small = FK_AS(fk_int, &msg);
    const fk_long *large = FK_AS(fk_long, &msg);
    const fk_boolean *truth = FK_AS(fk_boolean, &msg);
    const fk_ref *ref = FK_AS(fk_ref, &msg);
    if (small != NULL) {
        number_text("int", *small);
    } else if (large != NULL) {
        number_text("long", *large);
    } else if (truth != NULL) {
        event_text("type", FK_STR("bool"));
        event_text("value", *truth ? FK_STR("true") : FK_STR("false"));
    } else if (ref != NULL) {
        event_text("type", FK_STR("ref"));
        event_ref("value", sys, *ref);
    } else if (type == &fk_type_text) {
        event_text("type", FK_STR("string"));
        event_text("value", (fk_str){ data, len });
    } else if (type == &fk_type_bytes) {
        event_text("type", FK_STR("bytes"));
        key_of("value");
        hex(data, len);
    } else {
        event_text("type", fk_str_of(type != NULL ? type->name : "nothing"));
    }
}

void event_end(void)
{
    puts("}");
    fflush(stdout);
    funlockfile(stdout);
}

void event_error(const char *command, const char *text)
{
    event_begin("error");
    event_text("command", fk_str_of(command));
    event_text("text", fk_str_of(text));
    event_end();
}
