/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whoever shakes hands with us is answered by a connection of ours, to wherever he says he is. There may
 * be a thousand of them, and nobody there, or somebody who takes the connection and says nothing. So
 * only so many connections of ours may be half open at a time: being made, or not answered. The others
 * wait: first those that are for an actor here that began; then who has failed the fewest times, so that
 * somebody new need not wait behind those who are tried again and again; and of these the last to
 * come, who is there, while the first may have gone.
 *
 * One that was opened only because another system wanted it has a short time while others wait. It is
 * enough for whoever is there; and who is not would keep them waiting for long.
 */

#include "base/safeguard.h"
#include "remote/office.h"

enum { TURNS_AT_ONCE = 64, TURNS_EVERY_MS = 50 };

typedef struct fk_turn {
    fk_stream *stream;
    bool is_ours;
    uint32_t failures;
    fk_time since;
} fk_turn;

typedef struct fk_turns {
    fk_turn turn[TURNS_AT_ONCE]; /* the first is the next */
    uint32_t count;
    fk_stream *holder[TURNS_AT_ONCE]; /* half open, for others; oldest first */
    uint32_t holding;
} fk_turns;

bool fk__turnstile_pass(fk_driver *driver, fk_stream *stream)
{
    uint32_t max = driver->config.connecting_max;
    bool is_free = driver->half_count < max || !FK_SAFEGUARD(CONNECTING);
    bool is_next = stream->is_called || driver->queued_count == 0;
    if (is_free && is_next) {
        fk__turnstile_leave(driver, stream);
        return true;
    }
    stream->is_called = false;
    fk__driver_due(driver, is_free ? driver->now : driver->turns_at);
    if (stream->is_queued) return false;
    stream->is_queued = true;
    stream->used_at = driver->now;
    driver->queued_count++;
    return false;
}

/* There may be room for the next one, who is called when the driver runs again. */
static void next_call(fk_driver *driver)
{
    if (driver->queued_count != 0) fk__driver_due(driver, driver->now);
}

void fk__turnstile_leave(fk_driver *driver, fk_stream *stream)
{
    if (stream->is_queued) driver->queued_count--;
    if (stream->is_called) next_call(driver);
    stream->is_queued = stream->is_called = false;
}

void fk__turnstile_begin(fk_driver *driver, fk_stream *stream)
{
    FK_ASSERT(!stream->is_half);
    stream->is_half = true;
    driver->half_count++;
}

void fk__turnstile_end(fk_driver *driver, fk_stream *stream)
{
    if (!stream->is_half) return;
    stream->is_half = false;
    driver->half_count--;
    next_call(driver);
}

void fk__turnstile_look(fk_driver *driver, fk_stream *stream)
{
    bool is_whole = stream->is_connected && stream->handshake.phase == FK_HANDSHAKE_ANSWERED;
    if (is_whole) fk__turnstile_end(driver, stream);
}

static bool turn_is_before(const fk_turn *a, const fk_turn *b)
{
    if (a->is_ours != b->is_ours) return a->is_ours;
    if (a->failures != b->failures) return a->failures < b->failures;
    return a->since > b->since;
}

static void turns_put(fk_turns *turns, const fk_turn *turn)
{
    uint32_t at = turns->count;
    while (at > 0 && turn_is_before(turn, &turns->turn[at - 1])) at--;
    if (at == TURNS_AT_ONCE) return;
    if (turns->count < TURNS_AT_ONCE) turns->count++;
    for (uint32_t i = turns->count - 1; i > at; i--) turns->turn[i] = turns->turn[i - 1];
    turns->turn[at] = *turn;
}

static void turns_hold(fk_turns *turns, fk_stream *stream)
{
    uint32_t at = turns->holding;
    while (at > 0 && turns->holder[at - 1]->used_at > stream->used_at) at--;
    if (at == TURNS_AT_ONCE) return;
    if (turns->holding < TURNS_AT_ONCE) turns->holding++;
    for (uint32_t i = turns->holding - 1; i > at; i--) turns->holder[i] = turns->holder[i - 1];
    turns->holder[at] = stream;
}

static void turns_find(fk_driver *driver, fk_turns *turns)
{
    fk__remote_lock(driver->remote);
    for (fk_line *line = fk__driver_lines(driver); line != NULL; line = line->all_next) {
        if (line->authority == NULL) continue;
        for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
            fk_stream *stream = &line->stream[kind];
            if (!stream->is_queued && !stream->is_half) continue;
            const fk_turn turn = { stream, fk__line_is_ours(line), line->authority->failures,
                                   stream->used_at };
            if (stream->is_queued)
                turns_put(turns, &turn);
            else if (!turn.is_ours)
                turns_hold(turns, stream);
        }
    }
    fk__remote_unlock(driver->remote);
}

/* False: it may stay a while. */
static bool make_way(fk_driver *driver, fk_stream *stream)
{
    fk_time part = driver->config.handshake_timeout / FK_UNPROVEN_PART;
    fk_time until = fk__time_add(stream->used_at, part);
    if (until > driver->now) {
        driver->turns_at = until;
        return false;
    }
    fk__map_remove(&driver->conns, stream->conn);
    driver->transport.close(driver->transport.ctx, stream->conn, false);
    fk__stream_lost(driver, stream);
    return true;
}

void fk__turnstile_run(fk_driver *driver)
{
    fk_turns turns = { .count = 0 };
    uint32_t max = driver->config.connecting_max, held = 0, called = 0;
    /* Looking for them takes a while: not each time that somebody sends something. */
    if (driver->half_count >= max && driver->now < driver->turns_at) {
        fk__driver_due(driver, driver->turns_at);
        return;
    }
    turns_find(driver, &turns);
    driver->turns_at = fk__time_add(driver->now, FK_MILLIS(TURNS_EVERY_MS));
    for (; called < turns.count; called++) {
        bool is_full = driver->half_count + called >= max;
        if (is_full && held == turns.holding) break;
        if (is_full && !make_way(driver, turns.holder[held++])) break;
        turns.turn[called].stream->is_called = true;
        fk__line_wake(driver, turns.turn[called].stream->line);
    }
    fk__driver_due(driver, called == TURNS_AT_ONCE ? driver->now : driver->turns_at);
}
