/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The conformance data for the receiving side of system messages: sysmsg_ack.tsv, all rows. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/delivery.h"
#include "support/test.h"
#include "support/tsv.h"

#define TABLE FK_SOURCE_DIR "/tests/vectors/sysmsg_ack.tsv"

enum { SENDERS = 2, ITEMS = 16 };

/* "B12": the sender and the number. */
static void receive(fk_inbox inboxes[SENDERS], fk_str item, char *reply, size_t size)
{
    fk_inbox_effects fx;
    char number[24] = { 0 };
    size_t sender = (size_t)(item.ptr[0] - 'B');
    CHECK(item.len >= 2 && item.len < sizeof(number));
    CHECK(sender < SENDERS);
    memcpy(number, item.ptr + 1, item.len - 1);
    fk__inbox_step(&inboxes[sender], strtoull(number, NULL, 10), &fx);
    snprintf(reply, size, "%s%s:%llu", fx.must_deliver ? "deliver+" : "",
             fx.is_gap ? "nack" : "ack", (unsigned long long)fx.seq);
}

TEST(vectors_of_acknowledgements_hold)
{
    static tsv t;
    size_t rows = 0;
    for (tsv_open(&t, TABLE); tsv_next(&t); rows++) {
        fk_inbox inboxes[SENDERS] = { { 0 }, { 0 } };
        fk_str received[ITEMS], replies[ITEMS];
        size_t count = tsv_list(&t, "received", received, ITEMS);
        CHECK_U64(tsv_list(&t, "replies", replies, ITEMS), count);
        for (size_t i = 0; i < count; i++) {
            char reply[40];
            receive(inboxes, received[i], reply, sizeof(reply));
            if (tsv_equal(fk_str_of(reply), replies[i])) continue;
            test_failed(TABLE, (int)t.line, "%.*s: %s, expected %.*s", (int)received[i].len,
                        received[i].ptr, reply, (int)replies[i].len, replies[i].ptr);
        }
    }
    CHECK(rows >= 13);
}
