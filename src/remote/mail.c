/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/mail.h"

#include "remote/mail_names.h"

/* ---- beginning and end ---------------------------------------------------------------------------- */

static uint32_t codecs_count(const fk_codec *const *codecs)
{
    uint32_t count = 0;
    while (codecs != NULL && codecs[count] != NULL) count++;
    return count;
}

static fk_err codecs_fill(fk_mail *mail)
{
    const fk_codec *const *codecs = mail->config.codecs;
    for (; codecs != NULL && *codecs != NULL; codecs++) {
        FK_TRY(fk_codecs_add(&mail->codecs, *codecs, NULL));
    }
    return FK_OK;
}

fk_err fk__mail_create(fk_remote *remote, const fk_mail_config *config, fk_mail **out)
{
    fk_system *sys = remote->sys;
    uint32_t count = codecs_count(config->codecs);
    if (sys->address.host.len == 0 || count > UINT16_MAX) return FK_E_INVALID;
    size_t codecs_size = fk_codecs_memory(count);
    size_t place_size = (size_t)sys->paths.path_max + 1; /* no path is longer */
    size_t size = sizeof(fk_mail) + codecs_size + FK_PLACE_COUNT * place_size;
    void *memory;
    FK_TRY(fk__mem_alloc(&sys->mem, size, FK_SITE("mail"), &memory));
    fk_mail *mail = memory;
    *mail = (fk_mail){ .remote = remote, .sys = sys, .config = *config };
    mail->block_size = size;
    mail->place_size = place_size;
    char *tables = (char *)(mail + 1);
    for (unsigned i = 0; i < FK_PLACE_COUNT; i++) {
        mail->place[i] = tables + codecs_size + i * place_size;
    }
    fk_codecs_init(&mail->codecs, count, tables);
    fk_err err = codecs_fill(mail);
    if (err != FK_OK) {
        fk__mail_destroy(mail);
        return err;
    }
    *out = mail;
    return FK_OK;
}

void fk__mail_destroy(fk_mail *mail)
{
    if (mail != NULL) fk__mem_free(&mail->sys->mem, mail, mail->block_size);
}

void fk__mail_forget(fk_mail *mail, fk_mail_peer *peer)
{
    fk__names_fini(mail, peer);
}

/* ---- references -------------------------------------------------------------------------------------- */

size_t fk__mail_text(fk_mail *mail, fk_local *local, fk_ref ref, char *buf, size_t size)
{
    fk_str text = fk__names_text(mail, NULL, local, ref, FK_PLACE_INSIDE);
    if (text.len != 0 && text.len <= size) memcpy(buf, text.ptr, text.len);
    return text.len;
}

/* The ref, or why there is none; an actor that is gone is nobody. */
static fk_err ref_of_text(const fk_mail_way *way, fk_str text, fk_ref *out)
{
    fk_named named = { .err = FK_OK };
    if (text.len != 0) fk__names_in(way, text, false, &named);
    if (named.err == FK_OK) *out = named.ref;
    return (fk_err)named.err;
}

bool fk__mail_own(fk_mail *mail, fk_local *local, fk_str text, fk_ref *out)
{
    fk_named named = { .err = FK_OK };
    if (text.len != 0) fk__names_in(&(fk_mail_way){ mail, NULL, local }, text, true, &named);
    *out = named.is_own ? named.ref : FK_REF_NONE;
    return named.is_own;
}

fk_err fk__mail_ref(fk_mail *mail, fk_local *local, fk_str text, fk_ref *out)
{
    return ref_of_text(&(fk_mail_way){ mail, NULL, local }, text, out);
}

static size_t refs_text(void *ctx, fk_ref ref, char *buf, size_t size)
{
    const fk_mail_way *way = &((const fk_mail_refs *)ctx)->way;
    fk_str text = fk__names_text(way->mail, way->peer, way->local, ref, FK_PLACE_INSIDE);
    if (text.len != 0 && text.len <= size) memcpy(buf, text.ptr, text.len);
    return text.len;
}

static fk_err refs_ref(void *ctx, fk_str text, fk_ref *out)
{
    return ref_of_text(&((const fk_mail_refs *)ctx)->way, text, out);
}

void fk__mail_refs_init(fk_mail_refs *refs, fk_mail_way way)
{
    *refs = (fk_mail_refs){ { refs, refs_text, refs_ref }, way };
}
