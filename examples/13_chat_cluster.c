/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Grains: chat rooms on three nodes. A room is called by its name, from any node, and is there; which node
 * it runs on is nobody's business. Here the nodes are three systems of one process that talk over sockets
 * and share a store in memory; with "sqlite:FILE" they would be three processes. Rooms are volatile: when
 * the node of one leaves, the room is there again at once, and empty. */

#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NODES = 3, SLOTS = 64, GUESTS_MAX = 8, TEXT = 40, HEARD_MAX = 8 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        fk_err err_ = (call);                                                                      \
        if (err_ != FK_OK) return err_;                                                            \
    } while (0)

/* ---- messages; those that may go to another node have a codec -------------------------------------- */

typedef struct {
    fk_ref guest; /* who wants to hear: the sender of a call from another node is not the actor */
} enter;
FK_MESSAGE(enter);
FK_CODEC_STRUCT(enter, 1, FK_FIELD(enter, guest));

typedef struct {
    char name[8], text[TEXT];
} say;
FK_MESSAGE(say);
FK_CODEC_STRUCT(say, 1, FK_FIELD_ARRAY(say, name), FK_FIELD_ARRAY(say, text));

typedef struct {
    int32_t guests; /* how many are there */
} crowd;
FK_MESSAGE(crowd);
FK_CODEC_STRUCT(crowd, 1, FK_FIELD(crowd, guests));

static const fk_codec *const CODECS[] = { &fk_codec_enter, &fk_codec_say, &fk_codec_crowd, NULL };

/* ---- the room ---------------------------------------------------------------------------------------- */

typedef struct {
    int32_t count;
    fk_ref guest[GUESTS_MAX];
} room;

static fk_err room_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    room *self = state;
    const enter *e = FK_AS(enter, msg);
    const say *s = FK_AS(say, msg);
    if (e != NULL && self->count < GUESTS_MAX) self->guest[self->count++] = e->guest;
    for (int32_t i = 0; s != NULL && i < self->count; i++) {
        fk_tell(ctx, self->guest[i], FK_MSG_AT(say, s));
    }
    if (e == NULL && s == NULL) return fk_unhandled(ctx, msg);
    return fk_reply(ctx, FK_MSG(crowd, self->count));
}

static const fk_props ROOM = { .receive = room_receive, .state_size = sizeof(room) };

/* ---- guests: ordinary actors, each on a node --------------------------------------------------------- */

typedef struct {
    int32_t least; /* answer when you have heard so many */
} recall;
FK_MESSAGE(recall);

typedef struct {
    int32_t count;
    say heard[HEARD_MAX];
} memory;
FK_MESSAGE(memory);

typedef struct {
    memory all;
    fk_ref asker;
    int32_t least;
} guest;

static fk_err guest_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    guest *self = state;
    const say *s = FK_AS(say, msg);
    const recall *r = FK_AS(recall, msg);
    if (s != NULL && self->all.count < HEARD_MAX) self->all.heard[self->all.count++] = *s;
    if (r != NULL) {
        self->asker = msg->sender;
        self->least = r->least;
    }
    if (fk_ref_is_none(self->asker) || self->all.count < self->least) return FK_OK;
    fk_ref asker = self->asker;
    self->asker = FK_REF_NONE;
    const memory *all = &self->all;
    return fk_tell(ctx, asker, FK_MSG_AT(memory, all));
}

static const fk_props GUEST = { .receive = guest_receive, .state_size = sizeof(guest) };

/* ---- nodes ------------------------------------------------------------------------------------------- */

typedef struct {
    const char *id, *name; /* of the node, and of who sits there */
    fk_system *sys;
    fk_cluster *chat;
    fk_ref guest;
} node;

static node nodes[NODES] = { { .id = "north", .name = "ann" },
                             { .id = "south", .name = "ben" },
                             { .id = "west", .name = "cem" } };

static fk_err node_begin(node *n)
{
    const fk_system_config config = { .size = sizeof config,
                                      .name = "chat",
                                      .workers = 1,
                                      .scheme = FK_SCHEME_TCP,
                                      .remoting = { .enabled = true,
                                                    .host = "127.0.0.1", /* and any port */
                                                    .codecs = CODECS } };
    TRY(fk_system_start(&config, &n->sys));
    TRY(fk_spawn(n->sys, fk_str_of(n->name), &GUEST, &n->guest));
    TRY(fk_cluster_join(n->sys,
                        &(fk_cluster_config){ .size = sizeof(fk_cluster_config),
                                              .store = "memory:chat",
                                              .slots = SLOTS,
                                              .id = n->id },
                        &n->chat));
    TRY(fk_kind_register(n->chat, FK_STR("room"), &(fk_kind){ .props = &ROOM }));
    return fk_cluster_await_ready(n->chat, FK_SECONDS(5));
}

/* Until all slots are where they belong with so many nodes. Calls need not wait for that; but a volatile
 * room is new when its slot moves, and here it shall be the same each time. */
static void nodes_settle(int count)
{
    uint32_t held = 0;
    for (bool is_settled = false; !is_settled || held != SLOTS;) {
        fk_cluster_stats stats;
        uint64_t version = 0;
        held = 0;
        is_settled = true;
        for (int i = 0; i < NODES; i++) {
            if (nodes[i].chat == NULL) continue;
            fk_cluster_stats_get(nodes[i].chat, &stats);
            const fk_placement_snapshot *p = &stats.placement;
            if (p->members != (uint32_t)count || p->slots_draining != 0) is_settled = false;
            if (version != 0 && version != p->view_version) is_settled = false;
            version = p->view_version;
            held += p->slots_held;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
}

static fk_err in(node *n, const char *name)
{
    crowd c = { 0 };
    fk_grain_place place;
    TRY(fk_grain_ask_wait(n->chat, FK_STR("room"), fk_str_of(name), FK_MSG(enter, n->guest),
                          FK_INTO(crowd, &c), FK_SECONDS(5)));
    TRY(fk_grain_where(n->chat, FK_STR("room"), fk_str_of(name), &place));
    printf("%s, at %s, enters the %s, which is at %s: %d there\n", n->name, n->id, name,
           place.owner, (int)c.guests);
    return FK_OK;
}

static fk_err speak(node *n, const char *name, const char *text)
{
    crowd c = { 0 };
    say s = { .name = "" };
    snprintf(s.name, sizeof s.name, "%s", n->name);
    snprintf(s.text, sizeof s.text, "%s", text);
    TRY(fk_grain_ask_wait(n->chat, FK_STR("room"), fk_str_of(name), FK_MSG_AT(say, &s),
                          FK_INTO(crowd, &c), FK_SECONDS(5)));
    printf("%s says in the %s: %s (%d can hear it)\n", n->name, name, text, (int)c.guests);
    return FK_OK;
}

static fk_err heard(node *n, int32_t least)
{
    memory m = { 0 };
    TRY(fk_ask_wait(n->sys, n->guest, FK_MSG(recall, least), FK_INTO(memory, &m), FK_SECONDS(5)));
    printf("%s heard", n->name);
    for (int32_t i = 0; i < m.count; i++) {
        printf("%s %s: %s", i == 0 ? "" : ";", m.heard[i].name, m.heard[i].text);
    }
    printf("\n");
    return FK_OK;
}

static fk_err evening(void)
{
    node *ann = &nodes[0], *ben = &nodes[1], *cem = &nodes[2];
    for (int i = 0; i < NODES; i++) TRY(node_begin(&nodes[i]));
    nodes_settle(NODES);
    TRY(in(ann, "lobby"));
    TRY(in(ben, "lobby"));
    TRY(in(cem, "lobby"));
    TRY(in(cem, "kitchen"));
    TRY(speak(ann, "lobby", "hello"));
    TRY(speak(ben, "lobby", "hello ann"));
    TRY(heard(ann, 2));
    TRY(heard(ben, 2));
    TRY(heard(cem, 2));
    TRY(speak(cem, "kitchen", "nobody here"));
    TRY(heard(cem, 3));

    /* The node of the lobby goes. */
    fk_grain_place place;
    TRY(fk_grain_where(ann->chat, FK_STR("room"), FK_STR("lobby"), &place));
    node *gone = ann;
    for (int i = 0; i < NODES; i++) {
        if (strcmp(nodes[i].id, place.owner) == 0) gone = &nodes[i];
    }
    printf("%s leaves\n", gone->id);
    TRY(fk_cluster_leave(gone->chat, FK_SECONDS(5)));
    fk_system_stop(gone->sys);
    gone->sys = NULL;
    gone->chat = NULL;
    nodes_settle(NODES - 1);
    node *left = gone == ann ? ben : ann;
    TRY(speak(left, "lobby", "where is everybody?"));
    return in(left, "lobby");
}

int main(void)
{
    fk_err err = evening();
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].sys != NULL) fk_system_stop(nodes[i].sys);
    }
    if (err != FK_OK) printf("failed: %s\n", fk_err_text(err));
    return err == FK_OK ? 0 : 1;
}
