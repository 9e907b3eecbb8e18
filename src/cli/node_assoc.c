/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a node knows of other systems, as a table or as JSON. */

#include "foreign.h"
#include "node_admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* As many as go into one answer. */
enum { SHOWN_MAX = 500 };

typedef struct assoc_writer {
    FILE *out;
    bool json;
    size_t count;
} assoc_writer;

static const char *status_name(fk_authority_status status)
{
    static const char *const NAMES[] = { "unresolved", "connected", "quarantine" };
    return NAMES[status];
}

static void json_time(FILE *out, const char *name, fk_time time)
{
    if (time == FK_NEVER)
        fprintf(out, ",\"%s\":null", name);
    else
        fprintf(out, ",\"%s\":%.3f", name, (double)time / 1e9);
}

/* uid as text: it has 64 bits, and the numbers of many JSON readers do not. */
static void write_json(FILE *out, fk_str address, const fk_authority_info *info)
{
    fputs("{\"address\":", out);
    cli_json_text(out, address);
    fprintf(out, ",\"state\":\"%s\",\"open\":%s,\"uid\":\"%" PRIu64 "\",\"incarnation\":%u",
            status_name(info->status), info->is_open ? "true" : "false", info->uid,
            info->incarnation);
    fprintf(out, ",\"deferred\":%u", info->deferred);
    json_time(out, "since", info->status_age);
    json_time(out, "quarantine_left", info->quarantine_left);
    fprintf(out, ",\"failures\":%u", info->failures);
    json_time(out, "reconnect_in", info->reconnect_in);
    fputs(",\"host\":", out);
    cli_json_text(out, fk_str_of(info->host));
    fprintf(out, ",\"port\":%u}\n", info->port);
}

static void write_row(FILE *out, fk_str address, const fk_authority_info *info)
{
    char left[32] = "-";
    if (info->quarantine_left == FK_NEVER)
        snprintf(left, sizeof left, "for ever");
    else if (info->quarantine_left != 0)
        snprintf(left, sizeof left, "%.1f s", (double)info->quarantine_left / 1e9);
    fprintf(out, "%-40.*s %-11s %20" PRIu64 " %8u %10.1f s  %s\n", (int)address.len, address.ptr,
            status_name(info->status), info->uid, info->deferred, (double)info->status_age / 1e9,
            left);
}

static void write_one(void *user, fk_str address, const fk_authority_info *info)
{
    assoc_writer *w = user;
    if (w->count++ >= SHOWN_MAX) return;
    if (w->json)
        write_json(w->out, address, info);
    else
        write_row(w->out, address, info);
}

char *node_assoc_text(fk_system *sys, bool json)
{
    char *text = NULL;
    size_t len;
    assoc_writer w = { open_memstream(&text, &len), json, 0 };
    if (w.out == NULL) return NULL;
    if (!json) {
        fprintf(w.out, "%-40s %-11s %20s %8s %12s  %s\n", "address", "state", "uid", "deferred",
                "since", "quarantine left");
    }
    fk_err err = fk_authority_each(sys, write_one, &w);
    if (!json && w.count == 0) fputs("(no other system is known)\n", w.out);
    if (!json && w.count > SHOWN_MAX) {
        fprintf(w.out, "(and %zu more)\n", w.count - SHOWN_MAX);
    }
    fclose(w.out);
    if (err == FK_OK) return text;
    free(text);
    return NULL;
}
