/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_FIBER_SANITIZE_H
#define FK_SIM_FIBER_SANITIZE_H

/* AddressSanitizer must be told when the stack changes, and that an abandoned stack holds no
 * red zones any more; and it tells us when it is about to end the program. Without it these
 * functions are empty. */

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FK_FIBER_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FK_FIBER_ASAN 1
#endif

#if defined(FK_FIBER_ASAN)

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

static inline void fk__sanitize_leave(void **fake, const void *stack, size_t size)
{
    __sanitizer_start_switch_fiber(fake, stack, size);
}

static inline void fk__sanitize_enter(void *fake, const void **old_stack, size_t *old_size)
{
    __sanitizer_finish_switch_fiber(fake, old_stack, old_size);
}

static inline void fk__sanitize_renew(const void *stack, size_t size)
{
    __asan_unpoison_memory_region(stack, size);
}

static inline void fk__sanitize_on_death(void (*report)(void))
{
    __sanitizer_set_death_callback(report);
}

#else

static inline void fk__sanitize_leave(void **fake, const void *stack, size_t size)
{
    (void)fake;
    (void)stack;
    (void)size;
}

static inline void fk__sanitize_enter(void *fake, const void **old_stack, size_t *old_size)
{
    (void)fake;
    (void)old_stack;
    (void)old_size;
}

static inline void fk__sanitize_renew(const void *stack, size_t size)
{
    (void)stack;
    (void)size;
}

static inline void fk__sanitize_on_death(void (*report)(void))
{
    (void)report;
}

#endif

#endif /* FK_SIM_FIBER_SANITIZE_H */
