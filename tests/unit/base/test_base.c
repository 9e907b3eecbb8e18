/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"

TEST(err_numbers_are_frozen)
{
    CHECK_U64(FK_OK, 0);
    CHECK_U64(FK_E_INVALID, 1);
    CHECK_U64(FK_E_NOMEM, 2);
    CHECK_U64(FK_E_LIMIT, 3);
    CHECK_U64(FK_E_FULL, 4);
    CHECK_U64(FK_E_DEAD, 5);
    CHECK_U64(FK_E_STOPPING, 6);
    CHECK_U64(FK_E_TIMEOUT, 7);
    CHECK_U64(FK_E_NAME, 8);
    CHECK_U64(FK_E_NAME_TAKEN, 9);
    CHECK_U64(FK_E_RESERVED, 10);
    CHECK_U64(FK_E_NOT_FOUND, 11);
    CHECK_U64(FK_E_STATE, 12);
    CHECK_U64(FK_E_UNHANDLED, 13);
    CHECK_U64(FK_E_FOREIGN, 14);
    CHECK_U64(FK_E_OS, 15);
    CHECK_U64(FK_E_UNSUPPORTED, 16);
    CHECK_U64(FK_E_FAILED, 17);
    CHECK_U64(FK_E_MALFORMED, 41);
    CHECK_U64(FK_E_TRUNCATED, 42);
    CHECK_U64(FK_E_PROTOCOL, 43);
    CHECK_U64(FK_E_NO_CODEC, 44);
    CHECK_U64(FK_E_MISMATCH, 45);
}

TEST(err_has_a_name_and_a_sentence)
{
    CHECK_STR(fk_err_name(FK_OK), "FK_OK");
    CHECK_STR(fk_err_name(FK_E_NAME_TAKEN), "FK_E_NAME_TAKEN");
    CHECK_STR(fk_err_text(FK_E_NOMEM), "the allocator has no memory left");
    for (int i = 0; i <= FK_E_FAILED; i++) {
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(fk_err_name((fk_err)i), fk_err_name((fk_err)j)) != 0);
            CHECK(strcmp(fk_err_text((fk_err)i), fk_err_text((fk_err)j)) != 0);
        }
    }
}

TEST(err_of_no_meaning_is_said_to_be_unknown)
{
    CHECK_STR(fk_err_name((fk_err)12345), "FK_E_UNKNOWN");
    CHECK_STR(fk_err_text((fk_err)-1), "unknown error");
}

TEST(reason_names_differ_and_cover_all)
{
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        CHECK(strlen(fk_reason_name((fk_reason)i)) > 0);
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(fk_reason_name((fk_reason)i), fk_reason_name((fk_reason)j)) != 0);
        }
    }
    CHECK_STR(fk_reason_name(FK_REASON_STOPPED), "stopped");
    CHECK_STR(fk_reason_name(FK_REASON_COUNT), "unknown");
}

TEST(str_of_counts_up_to_the_nul)
{
    char text[] = "abc\0def";
    fk_str s = fk_str_of(text);
    CHECK(s.ptr == text);
    CHECK_U64(s.len, 3);
    CHECK_U64(fk_str_of("").len, 0);
    CHECK_U64(fk_str_of(NULL).len, 0);
    CHECK_U64(FK_STR("a\0b").len, 3); /* the literal, not up to its first NUL */
}

TEST(version_agrees_with_the_numbers)
{
    char text[32];
    snprintf(text, sizeof(text), "%d.%d.%d", FK_VERSION_MAJOR, FK_VERSION_MINOR, FK_VERSION_PATCH);
    CHECK_STR(fk_version(), text);
    CHECK_U64(FK_VERSION_HEX, FK_VERSION_MAJOR << 16 | FK_VERSION_MINOR << 8 | FK_VERSION_PATCH);
}

TEST(time_add_stops_at_never)
{
    CHECK_U64(fk__time_add(1, 2), 3);
    CHECK_U64(fk__time_add(FK_NEVER, 1), FK_NEVER);
    CHECK_U64(fk__time_add(5, FK_NEVER), FK_NEVER);
    CHECK_U64(fk__time_add(FK_NEVER - 1, 1), FK_NEVER);
    CHECK_U64(FK_MINUTES(2), FK_SECONDS(120));
    CHECK_U64(FK_MICROS(1000), FK_MILLIS(1));
}
