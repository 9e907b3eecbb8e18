/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Selections between systems. What is selected travels as a list of patterns; between ours and the
 * list lies the text of an expression, which is what the walk goes by (core/select.c). So what a
 * pattern says must be what its text will be read as, or it is refused: a name with a '/' or a
 * wildcard in it, or "..", is none that anybody has.
 */

#include "core/path.h"
#include "core/select.h"
#include "remote/mail_names.h"

/* ---- going out ------------------------------------------------------------------------------------- */

enum { UID_TEXT_MAX = 24 };

/* Patterns, the last name with its uid, and the message, in one block. */
typedef struct fk_select_block {
    fk_wire_pattern *pattern;
    char *last;
    unsigned char *message;
    size_t size;
} fk_select_block;

static fk_err block_alloc(fk_mail *mail, const fk_letter_path *path, size_t message_size,
                          fk_select_block *out)
{
    void *memory;
    size_t patterns = path->expression.count * sizeof(fk_wire_pattern);
    size_t last = path->expression.elements.len + UID_TEXT_MAX;
    out->size = patterns + last + message_size;
    FK_TRY(fk__mem_alloc(&mail->sys->mem, out->size, FK_SITE("selection going out"), &memory));
    out->pattern = memory;
    out->last = (char *)memory + patterns;
    out->message = (unsigned char *)out->last + last;
    return FK_OK;
}

static fk_str name_with_uid(fk_mail *mail, const fk_letter_path *path, fk_str name, char *buf)
{
    fk_text text = { buf, path->expression.elements.len + UID_TEXT_MAX, 0 };
    fk__text_put(&text, name);
    fk__text_uid(
        &text, &(fk_path){ .uid = path->expression.uid, .rules = (uint8_t)mail->sys->paths.rules });
    return (fk_str){ buf, text.len };
}

static uint32_t fill_patterns(fk_mail *mail, const fk_letter_path *path, fk_select_block *block)
{
    static const uint8_t KIND[] = { [FK_ELEMENT_NAME] = FK_PATTERN_NAME,
                                    [FK_ELEMENT_PARENT] = FK_PATTERN_PARENT,
                                    [FK_ELEMENT_PATTERN] = FK_PATTERN_GLOB };
    fk_expression e = { .elements = path->expression.elements, .rules = mail->sys->paths.rules };
    fk_element element;
    size_t cursor = 0;
    uint32_t count = 0;
    while (count < path->expression.count && fk_expression_next(&e, &cursor, &element)) {
        fk_wire_pattern *pattern = &block->pattern[count++];
        *pattern = (fk_wire_pattern){ .kind = KIND[element.kind], .text = element.text };
        if (element.kind == FK_ELEMENT_PARENT) pattern->text = FK_STR("");
        if (count == path->expression.count && path->expression.uid != 0) {
            pattern->text = name_with_uid(mail, path, element.text, block->last);
        }
    }
    return count;
}

fk_err fk__packet_select(fk_mail *mail, fk_mail_peer *peer, const fk_letter_path *path,
                         fk_packet *packet, fk_codec_fault *fault)
{
    fk_select_block block;
    void *bytes;
    fk_mem *mem = &mail->sys->mem;
    if (packet->e.payload.len > mail->config.frame_max_large) {
        return fk__packet_fail(packet, fault, FK_E_LIMIT, "the message is larger than a frame");
    }
    fk_err err = block_alloc(mail, path, packet->e.payload.len, &block);
    if (err != FK_OK) return fk__packet_fail(packet, fault, err, "no memory for a selection");
    err = fk__packet_write(mail, peer, packet, block.message, fault);
    if (err == FK_OK) {
        fk_wire_selection selection = {
            .serializer = packet->e.serializer,
            .manifest = packet->e.manifest.text,
            .message = { (const char *)block.message, packet->e.payload.len },
            .patterns = { .count = fill_patterns(mail, path, &block), .items = block.pattern },
        };
        size_t size = fk__selection_size(&selection);
        err = fk__mem_alloc(mem, size, FK_SITE("frame of a selection"), &bytes);
        if (err == FK_OK) {
            fk__selection_encode(&selection, bytes, size);
            packet->bytes = bytes;
            packet->codec = NULL;
            packet->e.payload.len = size;
            packet->e.serializer = FK_SERIALIZER_SELECTION;
            packet->e.manifest = (fk_wire_name){ .is_compressed = false };
        } else {
            err = fk__packet_fail(packet, fault, err, "no memory for a selection");
        }
    }
    fk__mem_free(mem, block.pattern, block.size);
    return err;
}

/* ---- coming in -------------------------------------------------------------------------------------- */

static bool has_wildcard(fk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '*' || text.ptr[i] == '?') return true;
    }
    return false;
}

static bool element_is_dots(fk_str text)
{
    return text.len <= 2 && text.len > 0 && text.ptr[0] == '.' && text.ptr[text.len - 1] == '.';
}

static bool has_byte(fk_str text, char byte)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == byte) return true;
    }
    return false;
}

/* The text of a pattern will be read as what the pattern says. */
static bool pattern_is_plain(const fk_wire_pattern *pattern, bool is_last)
{
    if (pattern->kind == FK_PATTERN_PARENT) return true;
    if (has_byte(pattern->text, '/') || element_is_dots(pattern->text)) return false;
    if (has_byte(pattern->text, '#') && !is_last) return false;
    return pattern->kind == FK_PATTERN_GLOB || !has_wildcard(pattern->text);
}

/* "user/a*". Its length, or 0 when it cannot be written so; without buf it is only measured. */
static size_t patterns_text(const fk_wire_selection *selection, char *buf, size_t size)
{
    fk_text text = { buf, size, 0 };
    fk_wire_pattern pattern;
    size_t cursor = 0;
    uint32_t count = 0;
    while (fk__selection_next(selection, &cursor, &pattern)) {
        bool is_last = ++count == selection->patterns.count;
        if (!pattern_is_plain(&pattern, is_last)) return 0;
        fk__text_put(&text, FK_STR("/"));
        fk__text_put(&text, pattern.kind == FK_PATTERN_PARENT ? FK_STR("..") : pattern.text);
    }
    return text.len;
}

/* What it selects, as text. FK_E_NAME: nothing that there could be. */
static fk_err selection_text(const fk_arrival *a, const fk_wire_selection *selection, char **out,
                             size_t *size)
{
    fk_local *local = a->way.local;
    size_t len = patterns_text(selection, NULL, 0);
    if (len == 0 && selection->patterns.count != 0) return FK_E_NAME;
    if (len > (size_t)local->sys->paths.path_max) return FK_E_NAME;
    *size = len + 1;
    *out = fk__cache_alloc(&local->cache, *size, FK_SITE("selection that came"));
    if (*out == NULL) return FK_E_NOMEM;
    patterns_text(selection, *out, *size);
    return FK_OK;
}

/* The node's contents go with what is sent; the node itself was only their envelope. */
static void select_send(const fk_arrival *a, const fk_expression *e, bool fans_out, fk_node *node)
{
    fk_local *local = a->way.local;
    fk_str text;
    fk_out what = fk__node_out(node, &text);
    fk_select_terms terms = { .fans_out = fans_out };
    if (!a->way.mail->config.is_trusting) terms.forbidden = local->sys->top.system;
    (void)fk__select(local, a->to.ref, e, a->sender.ref, what, terms);
    fk__node_free(&local->cache, node);
}

static fk_err select_walked(const fk_arrival *a, const fk_wire_selection *selection,
                            const fk_wire_payload *payload, fk_str text)
{
    fk_expression e;
    fk_node *node;
    if (fk_expression_split(&a->way.local->sys->paths, text, &e, NULL) != FK_OK) {
        fk__arrival_refuse(a, FK_REASON_BAD_PATH, payload, "no selection");
        return FK_OK;
    }
    FK_TRY(fk__arrival_open(a, payload, true, &node));
    if (node != NULL) select_send(a, &e, selection->fan_out, node);
    return FK_OK;
}

fk_err fk__arrival_select(const fk_arrival *a, fk_str bytes)
{
    fk_wire_selection selection;
    char *text;
    size_t size;
    if (fk__selection_decode(bytes, &selection, a->fault) != FK_OK) return FK_E_MALFORMED;
    fk_wire_payload payload = { .serializer = selection.serializer,
                                .message = selection.message,
                                .manifest = selection.manifest };
    if (fk_ref_is_none(a->to.ref)) {
        fk__arrival_refuse(a, (fk_reason)a->to.miss, &payload, "a selection seen from nobody");
        return FK_OK;
    }
    fk_err err = selection_text(a, &selection, &text, &size);
    if (err != FK_OK) {
        bool lacks = err == FK_E_NOMEM;
        fk__arrival_refuse(a, lacks ? FK_REASON_NO_MEMORY : FK_REASON_BAD_PATH, &payload,
                           lacks ? "no memory" : "no selection");
        return FK_OK;
    }
    err = select_walked(a, &selection, &payload, (fk_str){ text, size - 1 });
    fk__cache_free(&a->way.local->cache, text, size);
    return err;
}
