/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a telegram between two nodes of a cluster. */

#include "cluster/telegram.h"
#include "fuzz/fuzz.h"

enum { CLAIMS_MAX = 4096 };

static bool fuzz_lies_in(fk_str view, const uint8_t *data, size_t size)
{
    const char *from = (const char *)data;
    return view.ptr == NULL || (view.ptr >= from && view.ptr + view.len <= from + size);
}

static void fuzz_check_views(const fk_telegram *t, const uint8_t *data, size_t size)
{
    FUZZ_CHECK(fuzz_lies_in(t->reply_to, data, size));
    FUZZ_CHECK(fuzz_lies_in(t->grain_kind, data, size));
    FUZZ_CHECK(fuzz_lies_in(t->key, data, size));
    FUZZ_CHECK(fuzz_lies_in(t->claims, data, size));
    FUZZ_CHECK(fuzz_lies_in(t->cargo.manifest, data, size));
    FUZZ_CHECK(fuzz_lies_in(t->cargo.bytes, data, size));
    FUZZ_CHECK(t->key.len <= FK_GRAIN_KEY_MAX);
    FUZZ_CHECK(t->grain_kind.len <= FK_KIND_NAME_MAX);
    FUZZ_CHECK(t->reply_to.len <= FK_MEMBER_TEXT_MAX);
    FUZZ_CHECK(t->claim_count <= CLAIMS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fk_slot_claim claims[CLAIMS_MAX];
    fk_telegram t;
    fk_wire_fault fault = { FK_OK, UINT64_MAX, NULL };
    fk_err err = fk__telegram_decode((fk_str){ (const char *)data, size }, &t, &fault);
    if (err != FK_OK) {
        FUZZ_CHECK(fault.err == err);
        FUZZ_CHECK(fault.at <= size);
        FUZZ_CHECK(fault.message != NULL);
        return 0;
    }
    fuzz_check_views(&t, data, size);
    for (uint32_t i = 0; i < t.claim_count; i++) {
        fk__telegram_claim(&t, i, &claims[i]);
        FUZZ_CHECK(claims[i].slot < FK_SLOTS_MAX);
    }
    t.claims = (fk_str){ NULL, 0 };
    FUZZ_CHECK(fk__telegram_measure(&t) == size);
    unsigned char *written = malloc(size);
    FUZZ_CHECK(written != NULL);
    fk__telegram_encode(&t, claims, written, size);
    /* An error that this release does not know is taken for a failure, and stays one. */
    FUZZ_CHECK(t.err == FK_E_FAILED || memcmp(written, data, size) == 0);
    FUZZ_CHECK(fk__telegram_decode((fk_str){ (const char *)written, size }, &t, NULL) == FK_OK);
    free(written);
    return 0;
}
