/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Remoting: a customer and a shop, each a process with a system of its own. The customer says hello (a
 * text), orders (a struct, whose answer it waits for), and is told later that the goods are on their way:
 * to the actor whose reference was in the order. Run without arguments it is the customer, and starts
 * itself once more as the shop. */

#define _POSIX_C_SOURCE 200809L /* popen */
#include <fraktor/fraktor.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what both sides know: messages, and how they are written ------------------------------------- */

typedef struct {
    int32_t item, count;
    fk_ref desk; /* who wants to know when it is on its way */
} order;
FK_MESSAGE(order);
FK_CODEC_STRUCT(order, 1, FK_FIELD(order, item), FK_FIELD(order, count), FK_FIELD(order, desk));

typedef struct {
    int64_t price;
} receipt;
FK_MESSAGE(receipt);
FK_CODEC_STRUCT(receipt, 1, FK_FIELD(receipt, price));

typedef struct {
    int32_t item, count;
} shipped;
FK_MESSAGE(shipped);
FK_CODEC_STRUCT(shipped, 1, FK_FIELD(shipped, item), FK_FIELD(shipped, count));

static fk_err start(const char *name, fk_system **out)
{
    static const fk_codec *const CODECS[] = { &fk_codec_order, &fk_codec_receipt, &fk_codec_shipped,
                                              NULL };
    const fk_system_config config = { .size = sizeof config,
                                      .name = name,
                                      .scheme = FK_SCHEME_TCP,
                                      .remoting = { .enabled = true,
                                                    .host = "127.0.0.1", /* and any port */
                                                    .codecs = CODECS } };
    return fk_system_start(&config, out);
}

/* ---- the shop -------------------------------------------------------------------------------------- */

static fk_err till(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    const order *o = FK_AS(order, msg);
    if (o != NULL) {
        printf("shop: an order for %" PRId32 " of item %" PRId32 "\n", o->count, o->item);
        fk_tell(ctx, o->desk, FK_MSG(shipped, o->item, o->count));
        return fk_reply(ctx, FK_MSG(receipt, o->count * INT64_C(99)));
    }
    if (msg->type != &fk_type_text) return fk_unhandled(ctx, msg);
    printf("shop: %.*s\n", (int)msg->len, (const char *)msg->data);
    if (msg->len == 3 && memcmp(msg->data, "bye", 3) == 0) return fk_terminate(fk_system_of(ctx));
    return FK_OK;
}

/* Its first line tells the customer where it is. */
static int shop(void)
{
    fk_system *sys;
    fk_ref ref;
    char path[256];
    if (start("shop", &sys) != FK_OK) return 1;
    if (fk_spawn(sys, FK_STR("till"), &(fk_props){ .receive = till }, &ref) != FK_OK) return 1;
    fk_path_of(sys, ref, path, sizeof path);
    puts(path);
    fflush(stdout);
    fk_err err = fk_await_termination(sys, FK_SECONDS(60));
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}

/* ---- the customer ---------------------------------------------------------------------------------- */

static fk_err desk(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    const shipped *s = FK_AS(shipped, msg);
    if (s == NULL) return fk_unhandled(ctx, msg);
    printf("customer: %" PRId32 " of item %" PRId32 " are on their way\n", s->count, s->item);
    fk_stop_self(ctx);
    return FK_OK;
}

static fk_err buy(fk_system *sys, const char *path)
{
    fk_ref till_ref, desk_ref;
    receipt r = { 0 };
    fk_err err = fk_resolve(sys, fk_str_of(path), &till_ref, NULL);
    if (err == FK_OK)
        err = fk_spawn(sys, FK_STR("desk"), &(fk_props){ .receive = desk }, &desk_ref);
    /* It waits until the shop is reached; what is sent after it does not overtake it. */
    if (err == FK_OK) err = fk_send(sys, till_ref, FK_TEXT("hello"));
    if (err == FK_OK) {
        err = fk_ask_wait(sys, till_ref, FK_MSG(order, 7, 3, desk_ref), FK_INTO(receipt, &r),
                          FK_SECONDS(10));
    }
    if (err == FK_OK) err = fk_await_stopped(sys, desk_ref, FK_SECONDS(10));
    if (err == FK_OK) printf("customer: paid %" PRId64 "\n", r.price);
    fk_send(sys, till_ref, FK_TEXT("bye"));
    return err;
}

int main(int argc, char **argv)
{
    char command[1024], line[256];
    fk_system *sys;
    if (argc > 1) return shop();
    snprintf(command, sizeof command, "exec '%s' shop", argv[0]);
    FILE *other = popen(command, "r");
    if (other == NULL || fgets(line, sizeof line, other) == NULL) return 1;
    line[strcspn(line, "\n")] = '\0';
    if (start("customer", &sys) != FK_OK) return 1;
    fk_err err = buy(sys, line);
    while (fgets(line, sizeof line, other) != NULL)
        fputs(line, stdout); /* until the shop has closed */
    if (pclose(other) != 0) err = FK_E_FAILED;
    fk_system_stop(sys);
    if (err != FK_OK) printf("failed: %s\n", fk_err_text(err));
    return err == FK_OK ? 0 : 1;
}
