/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a dedup window as it is stored. It is refused, and nothing stays of it; or it is a
 * window, which is written as the same bytes again and can be used. */

#include "cluster/dedup.h"
#include "fraktor/host.h"
#include "fuzz/fuzz.h"

/* What an activation does with a window. */
static void use(fk_dedup *window)
{
    fk_request request = { 3, 7 };
    fk_str answer;
    fk_dedup_verdict before = fk__dedup_check(window, request, &answer);
    fk_err err = fk__dedup_note(window, request, false, FK_STR("answer"), FK_SECONDS(1));
    FUZZ_CHECK(err == FK_OK || err == FK_E_OVERLOADED);
    fk__dedup_check_all(window);
    fk_dedup_verdict after = fk__dedup_check(window, request, &answer);
    FUZZ_CHECK(after == (err == FK_OK ? FK_DEDUP_SEEN : before));
    fk__dedup_answered(window);
    fk__dedup_settle(window, 3, 100, FK_SECONDS(2));
    fk__dedup_check_all(window);
    fk__dedup_tidy(window, FK_MINUTES(20));
    fk__dedup_check_all(window);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fk_mem mem;
    if (mem.port.alloc == NULL) {
        fk_port port = fk_host_port();
        fk__mem_init(&mem, &port, 0);
    }
    fk_dedup window;
    fk__dedup_init(&window, &mem);
    fk_err err = fk__dedup_decode(&window, (fk_str){ (const char *)data, size });
    fk__dedup_check_all(&window);
    if (err == FK_OK) {
        size_t written = fk__dedup_measure(&window);
        FUZZ_CHECK(size == 0 || written == size);
        unsigned char *bytes = malloc(written);
        if (bytes == NULL) abort();
        fk__dedup_encode(&window, bytes, written);
        FUZZ_CHECK(size == 0 || memcmp(bytes, data, size) == 0);
        free(bytes);
        use(&window);
    } else {
        FUZZ_CHECK(err == FK_E_CORRUPT);
        FUZZ_CHECK(window.origins == NULL);
    }
    fk__dedup_fini(&window);
    FUZZ_CHECK(fk__word_load(&mem.used, FK_RELAXED) == 0);
    return 0;
}
