/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All situations times all events. A cell is two letters: what the event results in, and where the
 * authority is afterwards. Wherever the result is not "done" and the state stays, not a byte of the
 * authority may have changed.
 */

#include <string.h>

#include "support/desk.h"

static desk d;

/* ---- situations: each with two letters deferred, where anything can be ---------------------- */

static void in_unmapped(void)
{
    desk_defer(&d, 2);
}

static void in_planned(void)
{
    desk_defer(&d, 2);
    desk_map(&d);
}

static void in_attempt(void)
{
    in_planned();
    desk_attempt(&d);
}

static void in_dropped(void)
{
    desk_open(&d, 1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    desk_defer(&d, 2);
}

static void in_dropped_attempt(void)
{
    in_dropped();
    desk_attempt(&d);
}

static void in_lifted(void)
{
    desk_quarantined(&d, 1);
    desk_tick(&d);
    CHECK(d.a->state == UNRESOLVED);
    desk_defer(&d, 2);
}

static void in_lifted_attempt(void)
{
    in_lifted();
    desk_attempt(&d);
}

static void in_open(void)
{
    desk_map(&d);
    desk_defer(&d, 1);
    CHECK(desk_handshake(&d, 1) == DONE);
    desk_defer(&d, 1);
}

/* Open with 2, while 1 is quarantined. */
static void in_healed(void)
{
    desk_quarantined(&d, 1);
    CHECK(desk_handshake(&d, 2) == DONE);
    desk_defer(&d, 2);
}

static void in_overridden(void)
{
    desk_quarantined(&d, 1);
    CHECK(desk_override(&d, false) == DONE);
    desk_defer(&d, 2);
}

static void in_overridden_attempt(void)
{
    in_overridden();
    desk_attempt(&d);
}

static void in_quarantine_unmapped(void)
{
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
}

static void in_quarantine(void)
{
    desk_quarantined(&d, 1);
}

/* ---- events -------------------------------------------------------------------------------- */

enum { NOW = 1, OTHER = 2 }; /* whether `attempt` is to be that of the attempt under way */

#define UID(name, number)                                                                          \
    {                                                                                              \
        .kind = FK_AUTHORITY_EVENT_##name, .uid = number                                           \
    }
#define ATTEMPT(name, number)                                                                      \
    {                                                                                              \
        .kind = FK_AUTHORITY_EVENT_##name, .attempt = number                                       \
    }

static const fk_authority_event EVENTS[] = {
    UID(HANDSHAKE, 0),
    UID(HANDSHAKE, 1),
    UID(HANDSHAKE, 2),
    UID(HANDSHAKE, 3),
    ATTEMPT(FAILED, NOW),
    ATTEMPT(FAILED, OTHER),
    ATTEMPT(REFUSED, NOW),
    ATTEMPT(REFUSED, OTHER),
    UID(DROPPED, 1),
    UID(DROPPED, 2),
    UID(INVALID, 0),
    UID(INVALID, 1),
    UID(INVALID, 2),
    UID(NOTICE, 0),
    UID(NOTICE, 1),
    UID(NOTICE, 2),
    UID(QUARANTINE, 0),
    UID(QUARANTINE, 1),
    UID(QUARANTINE, 2),
    { .kind = FK_AUTHORITY_EVENT_OVERRIDE },
    { .kind = FK_AUTHORITY_EVENT_OVERRIDE, .force = true },
    UID(NONE, 0),
    UID(COUNT, 1),
};
enum { EVENT_COUNT = sizeof(EVENTS) / sizeof(EVENTS[0]) };

/* ---- the table ----------------------------------------------------------------------------- */

/* Results: d done, = the same, ~ stale, s state, m unmapped, x quarantined uid, f forbidden,
 * i invalid. Afterwards: u Unresolved, c Connected but waiting, o open, q Quarantine. */
static const char RESULT_LETTER[] = "d=~smxf??i";

typedef struct situation {
    const char *name;
    void (*prepare)(void);
    const char *cells; /* as EVENTS */
} situation;

static const situation FRAKTOR[] = {
    /* H0 H1 H2 H3 F  F- R  R- D1 D2 I0 I1 I2 N0 N1 N2 Q0 Q1 Q2 O  O! -  - */
    { "unmapped", in_unmapped,
      "iu mu mu mu ~u ~u ~u ~u su su su ~u ~u su ~u ~u dq ~u ~u su su iu iu" },
    { "planned", in_planned,
      "iu do do do ~u ~u ~u ~u su su su ~u ~u su ~u ~u dq ~u ~u su su iu iu" },
    { "attempt", in_attempt,
      "iu do do do du ~u dq ~u su su su ~u ~u su ~u ~u dq ~u ~u su su iu iu" },
    { "dropped", in_dropped,
      "iu do do do ~u ~u ~u ~u su su su su ~u su su ~u dq dq ~u su su iu iu" },
    { "lifted", in_lifted, "iu xq do do ~u ~u ~u ~u su su su su ~u su su ~u dq dq ~u su su iu iu" },
    { "lifted, attempt", in_lifted_attempt,
      "iu xq do do du ~u dq ~u su su su su ~u su su ~u dq dq ~u su su iu iu" },
    { "open", in_open, "io =o do do ~o ~o ~o ~o du ~o dq dq ~o dq dq ~o dq dq ~o so so io io" },
    { "healed", in_healed, "io xo =o do ~o ~o ~o ~o ~o du dq ~o dq dq ~o dq dq ~o dq so so io io" },
    { "overridden", in_overridden,
      "ic xq do do ~c ~c ~c ~c ~c ~c dq ~c ~c dq ~c ~c dq ~c ~c sc sc ic ic" },
    { "overridden, attempt", in_overridden_attempt,
      "ic xq do do du ~c dq ~c ~c ~c dq ~c ~c dq ~c ~c dq ~c ~c sc sc ic ic" },
    { "quarantine, unmapped", in_quarantine_unmapped,
      "iq mq mq mq sq sq sq sq sq sq =q ~q ~q =q ~q ~q =q ~q ~q du du iq iq" },
    { "quarantine", in_quarantine,
      "iq xq do do sq sq sq sq sq sq =q =q ~q =q =q ~q =q =q ~q dc dc iq iq" },
};

static const situation IGNORING[] = {
    { "quarantine", in_quarantine,
      "iq xq fq fq sq sq sq sq sq sq =q =q ~q =q =q ~q =q =q ~q dc dc iq iq" },
};

/* Where Pekko's rules differ: no uid means nobody, nobody is quarantined without one, an old uid
 * replaces a living one, no override. */
static const situation PEKKO[] = {
    { "unmapped", in_unmapped,
      "iu mu mu mu ~u ~u ~u ~u su su ~u ~u ~u ~u ~u ~u ~u ~u ~u su su iu iu" },
    { "attempt", in_attempt,
      "iu do do do du ~u du ~u su su ~u ~u ~u ~u ~u ~u ~u ~u ~u su su iu iu" },
    { "dropped", in_dropped,
      "iu do do do ~u ~u ~u ~u su su ~u su ~u ~u su ~u ~u dq ~u su su iu iu" },
    { "dropped, attempt", in_dropped_attempt,
      "iu do do do du ~u dq ~u su su ~u su ~u ~u su ~u ~u dq ~u su su iu iu" },
    { "open", in_open, "io =o do do ~o ~o ~o ~o du ~o ~o dq ~o ~o dq ~o ~o dq ~o so so io io" },
    { "healed", in_healed, "io xq =o do ~o ~o ~o ~o ~o du ~o ~o dq ~o ~o dq ~o ~o dq so so io io" },
    { "quarantine", in_quarantine,
      "iq xq do do sq sq sq sq sq sq ~q =q ~q ~q =q ~q ~q =q ~q fq fq iq iq" },
};

static char place(void)
{
    switch (d.a->state) {
    case UNRESOLVED: return 'u';
    case CONNECTED: return d.a->is_open ? 'o' : 'c';
    default: return 'q';
    }
}

static void check_cell(const situation *s, size_t event_index)
{
    static fk_authority before;
    static fk_authority_table table_before;
    fk_authority_event event = EVENTS[event_index];
    const char *cell = s->cells + 3 * event_index;
    char from = place();
    uint32_t deferred = d.a->deferred.count;
    if (event.attempt == NOW) event.attempt = d.a->attempt;
    if (event.attempt == OTHER) event.attempt = d.a->attempt + 1;
    memcpy(&before, d.a, sizeof(before));
    memcpy(&table_before, &d.table, sizeof(table_before));

    fk_authority_result result = desk_step(&d, event);

    char got[] = { RESULT_LETTER[result], place(), '\0' };
    if (got[0] != cell[0] || got[1] != cell[1]) {
        test_failed(__FILE__, __LINE__, "%s, event %zu: %s, expected %.2s", s->name, event_index,
                    got, cell);
    }
    if (cell[0] != 'd' && cell[1] == from) {
        CHECK(memcmp(&before, d.a, sizeof(before)) == 0);
        CHECK(memcmp(&table_before, &d.table, sizeof(table_before)) == 0);
        CHECK(!d.fx.is_new_peer && !d.fx.is_opened && !d.fx.must_connect && !d.fx.must_close);
    }
    CHECK(d.fx.is_opened == (cell[1] == 'o' && from != 'o'));
    CHECK_U64(d.fx.refused.count, cell[1] == 'q' && from != 'q' ? deferred : 0);
    CHECK_U64(d.a->deferred.count, cell[1] == 'q' ? 0 : deferred);
    CHECK(d.fx.uid_forgiven == 0 || (event.force && from == 'q'));
}

static void check_situation(const fk_authority_config *config, const situation *s)
{
    CHECK_U64(strlen(s->cells), EVENT_COUNT * 3 - 1);
    for (size_t i = 0; i < EVENT_COUNT; i++) {
        desk_init(&d, config);
        s->prepare();
        check_cell(s, i);
        desk_fini(&d);
    }
}

TEST(authority_matrix_of_situations_and_events)
{
    for (size_t i = 0; i < sizeof(FRAKTOR) / sizeof(FRAKTOR[0]); i++) {
        check_situation(NULL, &FRAKTOR[i]);
    }
}

TEST(authority_matrix_ignoring_new_uids)
{
    check_situation(&(fk_authority_config){ .ignore_new_uid = true }, &IGNORING[0]);
}

TEST(authority_matrix_by_pekkos_rules)
{
    for (size_t i = 0; i < sizeof(PEKKO) / sizeof(PEKKO[0]); i++) {
        check_situation(&(fk_authority_config){ .rules = FK_RULES_PEKKO }, &PEKKO[i]);
    }
}
