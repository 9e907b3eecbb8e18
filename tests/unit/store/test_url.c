/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stores by URL: which one it is, and what somebody is told whose URL is wrong. */

#include <string.h>

#include "fraktor/store.h"
#include "support/rig.h"

static rig r;

static fk_err try_open(fk_str url, const fk_store_provider *const *more, const char **why)
{
    fk_store *store = (fk_store *)(void *)&r;
    rig_init(&r);
    fk_err err = fk_store_open(url, more, true, &r.port, &store, why);
    if (err == FK_OK) store->ops->close(store);
    if (err != FK_OK) CHECK(store == NULL);
    CHECK_U64(atomic_load(&r.bytes), 0);
    return err;
}

static void check_wrong(fk_str url, fk_err err, const char *part)
{
    const char *why = NULL;
    CHECK_ERR(try_open(url, NULL, &why), err);
    CHECK(why != NULL);
    if (strstr(why, part) == NULL) CHECK_STR(why, part);
}

TEST(url_that_is_wrong_says_what_would_be_right)
{
    check_wrong(FK_STR(""), FK_E_INVALID, "is empty: say \"memory:\"");
    check_wrong(FK_STR("memory"), FK_E_INVALID, "a scheme and a colon");
    check_wrong(FK_STR("/var/lib/x.db"), FK_E_INVALID, "a scheme and a colon");
    check_wrong(FK_STR("1x:"), FK_E_INVALID, "a scheme and a colon");
    check_wrong(FK_STR(":x"), FK_E_INVALID, "1 to 32 letters");
    check_wrong(FK_STR("abcdefghijabcdefghijabcdefghijabc:x"), FK_E_INVALID, "1 to 32 letters");
    check_wrong(FK_STR("redis://h"), FK_E_UNSUPPORTED, "no store has that scheme");
    check_wrong(FK_STR("Memory:"), FK_E_UNSUPPORTED, "no store has that scheme");
}

TEST(url_of_a_file_that_is_wrong_says_why)
{
    const char *why = NULL;
    if (try_open(FK_STR("sqlite:"), NULL, &why) == FK_E_UNSUPPORTED) {
        CHECK(strstr(why, "without SQLite") != NULL);
        return;
    }
    check_wrong(FK_STR("sqlite:"), FK_E_INVALID, "names no file: say \"sqlite:FILE\"");
    check_wrong(FK_STR("sqlite::memory:"), FK_E_INVALID, "say \"memory:\"");
    check_wrong(FK_STR("sqlite:/tmp/a\0b"), FK_E_INVALID, "zero byte");
    check_wrong(FK_STR("sqlite:/no/such/folder/x.db"), FK_E_STORAGE, "is its directory there");
    check_wrong(FK_STR("sqlite:/tmp"), FK_E_STORAGE, "cannot be opened");
    static char text[5000] = "sqlite:";
    memset(text + 7, 'x', sizeof text - 7);
    check_wrong((fk_str){ text, sizeof text }, FK_E_INVALID, "too long");
}

TEST(url_memory_opens_with_any_name)
{
    const char *why = "";
    CHECK_OK(try_open(FK_STR("memory:"), NULL, &why));
    CHECK(why == NULL);
    CHECK_OK(try_open(FK_STR("memory:a b\xff"), NULL, NULL));
}

TEST(url_every_allocation_may_fail)
{
    for (uint64_t at = 1; at <= 3; at++) {
        fk_store *store = NULL;
        const char *why = NULL;
        rig_init(&r);
        rig_fault(&r, at, false);
        CHECK_ERR(fk_store_open(FK_STR("memory:x"), NULL, true, &r.port, &store, &why), FK_E_NOMEM);
        CHECK(why != NULL);
        CHECK_U64(atomic_load(&r.bytes), 0);
    }
}

static fk_err own_open(void *user, fk_str rest, bool is_state, const fk_port *port, fk_store **out,
                       const char **why)
{
    (void)port;
    (void)out;
    (void)why;
    CHECK(user == &r);
    CHECK(is_state);
    CHECK_U64(rest.len, 3);
    CHECK(memcmp(rest.ptr, "//h", 3) == 0);
    return FK_E_STORAGE;
}

TEST(url_of_a_store_that_a_program_brings)
{
    static const fk_store_provider own = { "redis", &r, own_open };
    static const fk_store_provider ours = { "memory", &r, own_open };
    const fk_store_provider *const more[] = { &own, &ours, NULL };
    const char *why = NULL;
    CHECK_ERR(try_open(FK_STR("redis://h"), more, &why), FK_E_STORAGE);
    CHECK_STR(why, fk_err_text(FK_E_STORAGE)); /* there is always a sentence */
    CHECK_ERR(try_open(FK_STR("memory://h"), more, &why), FK_E_STORAGE);
}

TEST(verbs_have_names)
{
    CHECK_STR(fk_store_verb_name(FK_STORE_JOIN), "join");
    CHECK_STR(fk_store_verb_name(FK_STORE_LIST), "list");
    CHECK_STR(fk_store_verb_name(FK_STORE_VERB_COUNT), "?");
}
