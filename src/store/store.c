/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stores by URL. */

#include "store/store.h"

static const fk_store_provider *const built_in[] = { &fk_store_memory, &fk_store_sqlite,
                                                     &fk_store_static };

enum { SCHEME_MAX = 32 };

const char *fk_store_verb_name(fk_store_verb verb)
{
    static const char *const names[] = {
#define STORE_NAME(NAME, name) name,
        FK_STORE_VERBS(STORE_NAME)
#undef STORE_NAME
    };
    return (unsigned)verb < FK_STORE_VERB_COUNT ? names[verb] : "?";
}

static bool scheme_is(const fk_store_provider *provider, fk_str scheme)
{
    return provider->scheme != NULL && fk__str_same(fk_str_of(provider->scheme), scheme);
}

static const fk_store_provider *provider_find(fk_str scheme, const fk_store_provider *const *more)
{
    for (; more != NULL && *more != NULL; more++) { /* first: a program may replace ours */
        if (scheme_is(*more, scheme)) return *more;
    }
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        if (scheme_is(built_in[i], scheme)) return built_in[i];
    }
    return NULL;
}

static bool is_scheme_char(char c, bool is_first)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
    return !is_first && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.');
}

static fk_err scheme_take(fk_str *url, fk_str *scheme, const char **why)
{
    size_t len = 0;
    if (url->len == 0) {
        *why = "the URL of a store is empty: say \"memory:\" or \"sqlite:FILE\"";
        return FK_E_INVALID;
    }
    while (len < url->len && is_scheme_char(url->ptr[len], len == 0)) len++;
    if (len == url->len || url->ptr[len] != ':') {
        *why = "the URL of a store begins with a scheme and a colon: \"memory:\", \"sqlite:FILE\"";
        return FK_E_INVALID;
    }
    if (len == 0 || len > SCHEME_MAX) {
        *why = "the scheme of a store's URL has 1 to 32 letters: \"memory:\", \"sqlite:FILE\"";
        return FK_E_INVALID;
    }
    *scheme = (fk_str){ url->ptr, len };
    *url = (fk_str){ url->ptr + len + 1, url->len - len - 1 };
    return FK_OK;
}

fk_err fk_store_open(fk_str url, const fk_store_provider *const *more, bool is_state,
                     const fk_port *port, fk_store **out, const char **why)
{
    FK_ASSERT(port != NULL);
    FK_ASSERT(out != NULL);
    fk_str scheme = { NULL, 0 };
    const char *unused = NULL;
    if (why == NULL) why = &unused;
    *why = NULL;
    *out = NULL;
    FK_TRY(scheme_take(&url, &scheme, why));
    const fk_store_provider *provider = provider_find(scheme, more);
    if (provider == NULL) {
        *why = "no store has that scheme: there are \"memory:\" and \"sqlite:FILE\"";
        return FK_E_UNSUPPORTED;
    }
    fk_err err = provider->open(provider->user, url, is_state, port, out, why);
    if (err != FK_OK && *why == NULL) *why = fk_err_text(err);
    return err;
}
