/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a node's /user/admin knows of its cluster: members, grains, where one is, and calling it. */

#include "foreign.h"
#include "node_admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many as go into one answer. */
enum { SHOWN_MAX = 500, REASON_MAX = 1024 };

typedef struct grain_writer {
    fk_system *sys;
    FILE *out;
    bool json;
    fk_str only; /* of this kind; empty: of all */
    size_t count;
} grain_writer;

/* ---- members --------------------------------------------------------------------------------------- */

static void write_member(void *user, const fk_member *m, bool is_self)
{
    grain_writer *w = user;
    if (w->count++ >= SHOWN_MAX) return;
    if (!w->json) {
        fprintf(w->out, "%-32.*s %-9s %6u %11" PRIu64 "  ", (int)m->id.len, m->id.ptr,
                fk_member_status_name(m->status), m->weight, m->incarnation);
        for (uint32_t i = 0; i < m->kind_count; i++) {
            fprintf(w->out, "%s%.*s", i == 0 ? "" : ",", (int)m->kinds[i].len, m->kinds[i].ptr);
        }
        fputs(is_self ? "  (this node)\n" : "\n", w->out);
        return;
    }
    fputs("{\"id\":", w->out);
    cli_json_text(w->out, m->id);
    fputs(",\"address\":", w->out);
    cli_json_text(w->out, m->address);
    fprintf(w->out, ",\"status\":\"%s\",\"weight\":%u,\"incarnation\":%" PRIu64 ",\"kinds\":[",
            fk_member_status_name(m->status), m->weight, m->incarnation);
    for (uint32_t i = 0; i < m->kind_count; i++) {
        if (i != 0) fputc(',', w->out);
        cli_json_text(w->out, m->kinds[i]);
    }
    fprintf(w->out, "],\"self\":%s}\n", is_self ? "true" : "false");
}

static fk_err write_members(fk_cluster *cluster, grain_writer *w)
{
    if (!w->json) {
        fprintf(w->out, "%-32s %-9s %6s %11s  %s\n", "member", "status", "weight", "incarnation",
                "kinds");
    }
    fk_err err = fk_cluster_members(cluster, write_member, w);
    if (!w->json && w->count == 0) fputs("(no member is known)\n", w->out);
    return err;
}

/* ---- grains ------------------------------------------------------------------------------------------ */

static void write_grain(void *user, fk_str kind, fk_str key, fk_ref ref, uint64_t epoch)
{
    grain_writer *w = user;
    char path[1024] = "";
    if (w->only.len != 0 &&
        (w->only.len != kind.len || memcmp(w->only.ptr, kind.ptr, kind.len) != 0)) {
        return;
    }
    if (w->count++ >= SHOWN_MAX) return;
    fk_path_of(w->sys, ref, path, sizeof path);
    if (!w->json) {
        fprintf(w->out, "%-16.*s ", (int)kind.len, kind.ptr);
        cli_show_text(w->out, key);
        fprintf(w->out, "  epoch=%" PRIu64 "  %s\n", epoch, path);
        return;
    }
    fputs("{\"kind\":", w->out);
    cli_json_text(w->out, kind);
    fputs(",\"key\":", w->out);
    cli_json_text(w->out, key);
    fprintf(w->out, ",\"epoch\":%" PRIu64 ",\"path\":", epoch);
    cli_json_text(w->out, fk_str_of(path));
    fputs("}\n", w->out);
}

static fk_err write_grains(fk_cluster *cluster, grain_writer *w)
{
    fk_err err = fk_grain_each(cluster, write_grain, w);
    if (!w->json && w->count == 0) fputs("(none is active on this node)\n", w->out);
    return err;
}

/* The text of an answer; owned by the caller. NULL: *err says why. */
static char *written(fk_system *sys, fk_err (*write)(fk_cluster *cluster, grain_writer *w),
                     bool json, const char *only, fk_err *err)
{
    char *text = NULL;
    size_t len;
    fk_cluster *cluster = fk_cluster_of(sys);
    *err = cluster != NULL ? FK_E_NOMEM : FK_E_NOT_READY;
    if (cluster == NULL) return NULL;
    grain_writer w = { sys, open_memstream(&text, &len), json, fk_str_of(only), 0 };
    if (w.out == NULL) return NULL;
    fputs("ok\n", w.out);
    *err = write(cluster, &w);
    if (w.count > SHOWN_MAX) {
        fprintf(w.out, json ? "{\"more\":%zu}\n" : "(and %zu more)\n", w.count - SHOWN_MAX);
    }
    if (fclose(w.out) != 0 && *err == FK_OK) *err = FK_E_NOMEM;
    if (*err == FK_OK) return text;
    free(text);
    return NULL;
}

char *node_members_text(fk_system *sys, bool json, fk_err *err)
{
    return written(sys, write_members, json, "", err);
}

char *node_grains_text(fk_system *sys, bool json, const char *kind, fk_err *err)
{
    return written(sys, write_grains, json, kind, err);
}

/* ---- where --------------------------------------------------------------------------------------------- */

static void where_reason(const fk_grain_place *p, const char *self, char reason[REASON_MAX])
{
    const char *word =
        p->members == 1 ? "is the only member of that kind" : "has the highest rendezvous score";
    int len = snprintf(reason, REASON_MAX, "slot %u of %u: %s %s", p->slot, p->slots,
                       p->owner[0] != '\0' ? p->owner : "nobody", word);
    if (p->members != 1) {
        len += snprintf(reason + len, REASON_MAX - (size_t)len, " of %u members", p->members);
    }
    if (p->is_here) {
        bool is_owner = strcmp(p->owner, self) == 0;
        snprintf(reason + len, REASON_MAX - (size_t)len,
                 is_owner ? "; it is active there"
                          : "; it is still active on %s, which will hand it over",
                 self);
    }
}

static void write_where(FILE *out, const fk_grain_place *p, fk_str kind, fk_str key,
                        const char *reason)
{
    fputs("{\"kind\":", out);
    cli_json_text(out, kind);
    fputs(",\"key\":", out);
    cli_json_text(out, key);
    fputs(",\"owner\":", out);
    cli_json_text(out, fk_str_of(p->owner));
    fputs(",\"address\":", out);
    cli_json_text(out, fk_str_of(p->address));
    fprintf(out,
            ",\"slot\":%u,\"slots\":%u,\"view_version\":%" PRIu64
            ",\"members\":%u,\"active_here\":%s,\"held_here\":%s,\"epoch\":",
            p->slot, p->slots, p->view_version, p->members, p->is_here ? "true" : "false",
            p->is_held ? "true" : "false");
    if (p->is_held)
        fprintf(out, "%" PRIu64, p->epoch);
    else
        fputs("null", out);
    fputs(",\"reason\":", out);
    cli_json_text(out, fk_str_of(reason));
    fputs("}\n", out);
}

char *node_where_text(fk_system *sys, bool json, fk_str kind, fk_str key, fk_err *err)
{
    fk_grain_place place;
    fk_cluster_stats stats;
    char *text = NULL, reason[REASON_MAX];
    size_t len;
    fk_cluster *cluster = fk_cluster_of(sys);
    *err = cluster != NULL ? fk_grain_where(cluster, kind, key, &place) : FK_E_NOT_READY;
    if (*err == FK_OK) *err = fk_cluster_stats_get(cluster, &stats);
    if (*err != FK_OK) return NULL;
    where_reason(&place, stats.id, reason);
    FILE *out = open_memstream(&text, &len);
    if (out == NULL) {
        *err = FK_E_NOMEM;
        return NULL;
    }
    fputs("ok\n", out);
    if (json)
        write_where(out, &place, kind, key, reason);
    else
        fprintf(out, "%s\n%s (view %" PRIu64 ")\n", place.owner, reason, place.view_version);
    fclose(out);
    return text;
}
