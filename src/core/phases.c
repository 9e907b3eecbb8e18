/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/phases.h"

#define PHASE_TIMEOUT FK_SECONDS(5)

/* ---- names --------------------------------------------------------------------------------- */

fk_str fk__phase_name(const fk_phase *phase)
{
    return (fk_str){ phase->name, phase->name_len };
}

/* Printable, because they are shown as they are; no '/', because it stands between the two. */
fk_err fk__phase_name_check(fk_str name)
{
    if (name.ptr == NULL || name.len == 0 || name.len > FK_SHUTDOWN_NAME_MAX) return FK_E_NAME;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] < ' ' || name.ptr[i] > '~' || name.ptr[i] == '/') return FK_E_NAME;
    }
    return FK_OK;
}

uint32_t fk__phases_find(const fk_phases *phases, fk_str name)
{
    for (uint32_t i = 0; i < phases->count; i++) {
        const fk_phase *phase = &phases->at[i];
        if (phase->name_len == name.len && memcmp(phase->name, name.ptr, name.len) == 0) return i;
    }
    return FK_PHASE_NONE;
}

/* ---- order --------------------------------------------------------------------------------- */

/* The last one made of those that may begin, or FK_PHASE_NONE. So a phase of the user's own comes as
 * early as it can, and not after the system is gone. */
static uint32_t ready_phase(const fk_phases *phases, uint64_t over)
{
    for (uint32_t i = phases->count; i-- > 0;) {
        bool is_over = (over >> i & 1) != 0;
        if (!is_over && (phases->at[i].after & ~over) == 0) return i;
    }
    return FK_PHASE_NONE;
}

fk_err fk__phases_sort(const fk_phases *phases, uint8_t *order)
{
    uint64_t over = 0;
    for (uint32_t n = 0; n < phases->count; n++) {
        uint32_t next = ready_phase(phases, over);
        if (next == FK_PHASE_NONE) return FK_E_CYCLE; /* each waits for another */
        order[n] = (uint8_t)next;
        over |= (uint64_t)1 << next;
    }
    return FK_OK;
}

/* ---- making and changing ------------------------------------------------------------------- */

static fk_err phase_need(fk_phases *phases, fk_str name, uint32_t *out)
{
    FK_TRY(fk__phase_name_check(name));
    *out = fk__phases_find(phases, name);
    if (*out != FK_PHASE_NONE) return FK_OK;
    if (phases->count == FK_SHUTDOWN_PHASES_MAX) return FK_E_LIMIT;
    *out = phases->count++;
    fk_phase *phase = &phases->at[*out];
    *phase = (fk_phase){ .timeout = PHASE_TIMEOUT, .name_len = (uint8_t)name.len };
    memcpy(phase->name, name.ptr, name.len);
    return FK_OK;
}

/* May leave phases behind that were not there before. */
static fk_err spec_apply(fk_phases *phases, uint32_t index, const fk_shutdown_phase *spec)
{
    uint64_t after = spec->depends_on != NULL ? 0 : phases->at[index].after;
    for (size_t i = 0; spec->depends_on != NULL && i < spec->depends_count; i++) {
        uint32_t other;
        FK_TRY(phase_need(phases, spec->depends_on[i], &other));
        after |= (uint64_t)1 << other;
    }
    fk_phase *phase = &phases->at[index];
    phase->after = after;
    if (spec->timeout != 0) phase->timeout = spec->timeout;
    phase->aborts = spec->aborts;
    phase->disabled = spec->disabled;
    uint8_t order[FK_SHUTDOWN_PHASES_MAX];
    return fk__phases_sort(phases, order);
}

fk_err fk__phases_set(fk_phases *phases, const fk_shutdown_phase *spec)
{
    uint32_t count = phases->count, index;
    if (spec->size != 0 && spec->size < sizeof(*spec)) return FK_E_INVALID;
    if (spec->timeout < 0) return FK_E_INVALID;
    if (spec->depends_on == NULL && spec->depends_count != 0) return FK_E_INVALID;
    FK_TRY(phase_need(phases, spec->name, &index));
    fk_phase before = phases->at[index];
    fk_err err = spec_apply(phases, index, spec);
    if (err == FK_OK) return FK_OK;
    phases->at[index] = before;
    phases->count = count;
    return err;
}

void fk__phases_clear(fk_phases *phases)
{
    phases->count = 0;
}

void fk__phases_init(fk_phases *phases)
{
    static const struct {
        const char *name;
        int seconds;
    } DEFAULTS[] = {
        { "before-service-unbind", 5 },
        { "service-unbind", 5 },
        { "service-requests-done", 5 },
        { "service-stop", 5 },
        { "before-cluster-shutdown", 5 },
        { "cluster-sharding-shutdown-region", 10 },
        { "cluster-leave", 5 },
        { "cluster-exiting", 10 },
        { "cluster-exiting-done", 5 },
        { "cluster-shutdown", 5 },
        { "before-actor-system-terminate", 5 },
        { "actor-system-terminate", 10 },
    };
    fk_str before = { NULL, 0 };
    fk__phases_clear(phases);
    for (uint32_t i = 0; i < sizeof(DEFAULTS) / sizeof(DEFAULTS[0]); i++) {
        fk_shutdown_phase spec = { .name = fk_str_of(DEFAULTS[i].name),
                                   .depends_on = &before,
                                   .depends_count = i > 0,
                                   .timeout = FK_SECONDS(DEFAULTS[i].seconds) };
        fk_err err = fk__phases_set(phases, &spec);
        FK_ASSERT(err == FK_OK);
        before = spec.name;
    }
}

/* ---- the course of a run ------------------------------------------------------------------- */

static uint32_t place_of(const fk_course *course, const fk_phases *phases, uint32_t phase)
{
    uint32_t place = 0;
    while (place < phases->count && course->order[place] != phase) place++;
    return place;
}

fk_err fk__course_begin(fk_course *course, const fk_phases *phases, uint32_t from)
{
    FK_ASSERT(course->state == FK_COURSE_IDLE);
    FK_TRY(fk__phases_sort(phases, course->order));
    course->at = from == FK_PHASE_NONE ? 0 : place_of(course, phases, from);
    course->state = FK_COURSE_BETWEEN;
    return FK_OK;
}

static fk_move phase_enter(fk_course *course, const fk_phases *phases, fk_time now)
{
    if (course->at == phases->count) {
        fk__course_end(course, FK_OK);
        return (fk_move){ FK_MOVE_END, FK_PHASE_NONE };
    }
    uint32_t index = course->order[course->at];
    if (phases->at[index].disabled) {
        course->at++;
        return (fk_move){ FK_MOVE_SKIP, index };
    }
    course->state = FK_COURSE_INSIDE;
    course->tasks = course->pending = 0;
    course->failure = FK_OK;
    course->deadline = fk__time_add(now, phases->at[index].timeout);
    return (fk_move){ FK_MOVE_ENTER, index };
}

static fk_move phase_leave(fk_course *course, const fk_phases *phases, fk_move_kind how)
{
    uint32_t index = course->order[course->at];
    if (course->failure != FK_OK && phases->at[index].aborts) {
        fk__course_end(course, course->failure);
        return (fk_move){ how == FK_MOVE_DONE ? FK_MOVE_FAILED : how, index };
    }
    course->at++;
    course->state = FK_COURSE_BETWEEN;
    return (fk_move){ how, index };
}

fk_move fk__course_step(fk_course *course, const fk_phases *phases, fk_time now)
{
    switch (course->state) {
    case FK_COURSE_IDLE: break;
    case FK_COURSE_BETWEEN: return phase_enter(course, phases, now);
    case FK_COURSE_INSIDE:
        if (course->pending == 0) return phase_leave(course, phases, FK_MOVE_DONE);
        if (now < course->deadline) break;
        if (course->failure == FK_OK) course->failure = FK_E_TIMEOUT;
        return phase_leave(course, phases, FK_MOVE_TIMEOUT);
    case FK_COURSE_OVER: return (fk_move){ FK_MOVE_END, FK_PHASE_NONE };
    }
    return (fk_move){ FK_MOVE_WAIT, FK_PHASE_NONE };
}

void fk__course_expect(fk_course *course, uint32_t tasks)
{
    FK_ASSERT(course->state == FK_COURSE_INSIDE);
    FK_ASSERT(course->tasks == 0);
    course->tasks = course->pending = tasks;
}

void fk__course_report(fk_course *course, fk_err err)
{
    FK_ASSERT(course->state == FK_COURSE_INSIDE);
    FK_ASSERT(course->pending > 0);
    course->pending--;
    if (course->failure == FK_OK) course->failure = err;
}

void fk__course_end(fk_course *course, fk_err outcome)
{
    if (course->state == FK_COURSE_OVER) return;
    course->state = FK_COURSE_OVER;
    course->outcome = outcome;
}

uint32_t fk__course_phase(const fk_course *course)
{
    return course->state == FK_COURSE_INSIDE ? course->order[course->at] : FK_PHASE_NONE;
}

bool fk__course_has_passed(const fk_course *course, const fk_phases *phases, uint32_t phase)
{
    if (course->state == FK_COURSE_IDLE) return false;
    if (course->state == FK_COURSE_OVER) return true;
    uint32_t place = place_of(course, phases, phase);
    return place < course->at || (place == course->at && course->state == FK_COURSE_INSIDE);
}
