/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a byte, which says how the system is set up, and what a frame holds, for a system that
 * runs: "f", at 10.0.0.1:1, with an actor /user/there. Whatever comes is refused, or delivered, or a
 * dead letter; and the system goes on. */

#include "fraktor/codec.h"
#include "fraktor/host.h"
#include "fraktor/remote.h"
#include "fuzz/fuzz.h"
#include "remote/mail.h"
#include "remote/remote.h"

typedef struct fuzz_order {
    int64_t amount;
    fk_ref who[2];
    bool is_paid;
    unsigned char filling[90];
} fuzz_order;
FK_MESSAGE(fuzz_order);
FK_CODEC_STRUCT(fuzz_order, 3, FK_FIELD(fuzz_order, amount), FK_FIELD_ARRAY(fuzz_order, who),
                FK_FIELD(fuzz_order, is_paid), FK_FIELD_ARRAY(fuzz_order, filling));

enum { IS_TRUSTING = 1, ROUNDS = 500, TABLE = 8 };

static const fk_codec *const CODECS[] = { &fk_codec_fuzz_order, NULL };
static const fk_compression_config TABLES = { TABLE, 64, 512 };
static const fk_hash_key KEY = { 1, 2 };

static fk_system *sys;
static fk_mail *mail[2]; /* not trusting, trusting */
static fk_mail_peer peer[2];
static fk_compression tables[2];
static void *memory[2];
static fk_ref there;
static uint64_t handled, rounds;

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    handled += msg->len + 1;
    for (size_t i = 0; i < msg->len; i++) handled += ((const unsigned char *)msg->data)[i];
    const fuzz_order *order = FK_AS(fuzz_order, msg);
    if (order != NULL) fk_tell(ctx, order->who[0], FK_TEXT("to whom it was about"));
    return fk_reply(ctx, FK_TEXT("thanks"));
}

static void spawn(void)
{
    static const fk_props PROPS = { .receive = receive };
    if (sys != NULL && fk_is_alive(sys, there)) return;
    FUZZ_CHECK(fk_spawn(sys, FK_STR("there"), &PROPS, &there) == FK_OK);
}

static void begin(void)
{
    fk_system_config config = { .name = "f",
                                .workers = FK_WORKERS_NONE,
                                .pools_malloc = true,
                                .remoting = { .host = "10.0.0.1", .port = 1 } };
    FUZZ_CHECK(fk_system_start(&config, &sys) == FK_OK);
    for (int i = 0; i < 2; i++) {
        fk_mail_config how = { .codecs = CODECS,
                               .frame_max = 1 << 18,
                               .frame_max_large = 1 << 20,
                               .is_trusting = i == IS_TRUSTING };
        FUZZ_CHECK(fk__mail_create(fk__remote_of(sys), &how, &mail[i]) == FK_OK);
        memory[i] = calloc(1, fk__compression_memory(&TABLES));
        FUZZ_CHECK(memory[i] != NULL);
        fk__compression_init(&tables[i], &TABLES, &KEY, memory[i]);
    }
    peer[1].refs_in = &tables[0];
    peer[1].manifests_in = &tables[1];
    rounds = 0;
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        fk__mail_forget(mail[i], &peer[i]);
        fk__mail_destroy(mail[i]);
        free(memory[i]);
        peer[i] = (fk_mail_peer){ .cache = NULL };
    }
    FUZZ_CHECK(fk_system_stop(sys) == FK_OK);
    sys = NULL;
}

static void run(void)
{
    while (fk_host_run_once(sys, 0) != 0) continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fk_authority FROM = { .text = { "b@10.0.0.2:2", 12 } };
    fk_wire_envelope e;
    fk_wire_fault fault = { .message = NULL };
    if (size == 0) return 0;
    if (sys == NULL) begin();
    spawn();
    run();
    fk_str frame = { (const char *)data + 1, size - 1 };
    if (fk__envelope_decode(frame, &e, &fault) == FK_OK) {
        int i = data[0] & IS_TRUSTING;
        fk_wire_payload inner;
        if (fk__mail_is_heartbeat(&e, &inner)) handled++;
        fk_local *local = fk__local_enter(sys);
        fk_err err = fk__mail_read(mail[i], local, &peer[i], &FROM, &e, &fault);
        fk__local_leave(local);
        FUZZ_CHECK(err == FK_OK || err == FK_E_MALFORMED);
        FUZZ_CHECK(err == FK_OK || (fault.message != NULL && fault.err != FK_OK));
        run();
    }
    /* Whoever was poisoned may be the user's guardian: then all of it has ended. */
    bool is_over = fk__half_load(&sys->stopping, FK_ACQUIRE) != FK_SPAWN_OPEN;
    if (is_over || ++rounds == ROUNDS) end();
    return 0;
}
