/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records: events with everything they point to, for those who look at them later. */

#include "core/event.h"
#include "core/registry.h"

const fk_type fk_type_fk_event_record = { "fk_event_record", sizeof(fk_event_record),
                                          _Alignof(fk_event_record), NULL };

static void put_text(char *to, size_t size, fk_str text)
{
    size_t len = text.len < size ? text.len : size - 1;
    if (len != 0) memcpy(to, text.ptr, len);
    to[len] = '\0';
}

static void put_chars(char *to, size_t size, const char *text)
{
    put_text(to, size, text != NULL ? fk_str_of(text) : FK_STR(""));
}

#define PUT_TEXT(field, text)  put_text(field, sizeof(field), text)
#define PUT_CHARS(field, text) put_chars(field, sizeof(field), text)

static void fill_letter(fk_local *local, const fk_dead_letter *letter, fk_event_record *out)
{
    out->actor = letter->to;
    out->sender = letter->sender;
    out->letter = letter->reason;
    out->len = letter->len;
    fk__dead_letter_path(local, letter, out->path, sizeof(out->path));
    PUT_CHARS(out->type, letter->type->name);
    PUT_CHARS(out->reason, fk_reason_name(letter->reason));
    PUT_TEXT(out->detail, letter->detail);
}

static void fill_failure(const fk_failure *failure, fk_event_record *out)
{
    out->err = failure->err;
    out->phase = failure->phase;
    PUT_CHARS(out->type, failure->type != NULL ? failure->type->name : NULL);
    PUT_CHARS(out->detail, failure->detail);
}

void fk__record_fill(fk_local *local, const fk_event *event, fk_event_record *out)
{
    memset(out, 0, offsetof(fk_event_record, path));
    out->kind = event->kind;
    out->level = event->level;
    out->at = event->at;
    out->actor = event->actor;
    out->other = event->other;
    out->err = event->kind == FK_EVENT_PATH_FAULT ? event->fault.err : event->err;
    out->directive = event->directive;
    out->count = event->count;
    out->fault_segment = event->fault.segment;
    out->fault_at = event->fault.at;
    out->path[0] = out->type[0] = out->detail[0] = '\0';
    PUT_TEXT(out->text, event->text);
    PUT_CHARS(out->from, event->from);
    PUT_CHARS(out->to, event->to);
    PUT_CHARS(out->reason, event->reason);
    if (event->failure != NULL) fill_failure(event->failure, out);
    if (event->letter != NULL)
        fill_letter(local, event->letter, out);
    else if (!fk_ref_is_none(event->actor))
        fk__path_of(local, event->actor, out->path, sizeof(out->path));
}

static bool is_letter(fk_event_kind kind)
{
    return (FK_TOPIC_DEAD_LETTERS >> kind & 1) != 0;
}

static bool is_failure(fk_event_kind kind)
{
    return kind == FK_EVENT_FAILED || kind == FK_EVENT_SUPERVISED;
}

void fk__record_view(const fk_event_record *record, fk_record_view *out)
{
    memset(out, 0, sizeof(*out));
    out->type = (fk_type){ record->type, 0, 1, NULL };
    out->letter = (fk_dead_letter){
        record->letter, record->actor, fk_str_of(record->path),  record->sender, &out->type,
        NULL,           record->len,   fk_str_of(record->detail)
    };
    out->failure =
        (fk_failure){ record->actor, record->err, record->type[0] != '\0' ? &out->type : NULL,
                      record->detail, record->phase };
    out->event = (fk_event){
        .kind = record->kind,
        .level = record->level,
        .at = record->at,
        .actor = record->actor,
        .other = record->other,
        .letter = is_letter(record->kind) ? &out->letter : NULL,
        .failure = is_failure(record->kind) ? &out->failure : NULL,
        .err = record->err,
        .directive = record->directive,
        .count = record->count,
        .text = fk_str_of(record->text),
        .fault = { record->kind == FK_EVENT_PATH_FAULT ? record->err : FK_OK, record->fault_segment,
                   record->fault_at, record->reason },
        .from = record->from,
        .to = record->to,
        .reason = record->reason,
    };
}
