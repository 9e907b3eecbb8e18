/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/authority.h"

enum {
    AUTHORITIES_MOST = 1 << 20,
    UIDS_MOST = 1 << 16,
    DEFERRED_FRAKTOR = 1024,
    DEFERRED_PEKKO = 3072
};

#define BACKOFF_MOST FK_MINUTES(24 * 60)

static void authority_number_default(uint32_t *number, uint32_t otherwise)
{
    if (*number == 0) *number = otherwise;
}

static void authority_time_default(fk_time *time, fk_time otherwise)
{
    if (*time == 0) *time = otherwise;
}

fk_err fk__authority_configure(const fk_authority_config *config, fk_authority_config *out)
{
    fk_authority_config c = config != NULL ? *config : (fk_authority_config){ 0 };
    bool is_pekko = c.rules == FK_RULES_PEKKO;
    if (c.rules != FK_RULES_FRAKTOR && !is_pekko) return FK_E_INVALID;
    if (is_pekko && c.ignore_new_uid) return FK_E_INVALID;

    authority_number_default(&c.authorities_max, 4096);
    authority_number_default(&c.deferred_max, is_pekko ? DEFERRED_PEKKO : DEFERRED_FRAKTOR);
    authority_number_default(&c.deferred_total_max, 8192);
    authority_number_default(&c.uids_max, 1024);
    authority_number_default(&c.tombs_max, 65536);
    authority_number_default(&c.jitter_percent, 20);
    if (c.authorities_max > AUTHORITIES_MOST || c.uids_max > UIDS_MOST) return FK_E_INVALID;
    if (c.tombs_max > AUTHORITIES_MOST) return FK_E_INVALID;
    if (c.jitter_percent > 100) return FK_E_INVALID;

    authority_time_default(&c.quarantine, FK_QUARANTINE_DEFAULT);
    if (c.quarantine < FK_SECONDS(1)) return FK_E_INVALID;
    if (c.quarantine_override != 0 && c.quarantine_override < FK_SECONDS(1)) return FK_E_INVALID;
    authority_time_default(&c.give_up_after,
                           c.quarantine_override != 0 ? c.quarantine_override : c.quarantine);
    authority_time_default(&c.backoff_min, FK_MILLIS(100));
    authority_time_default(&c.backoff_max, FK_SECONDS(30));
    if (c.give_up_after < 0 || c.backoff_min < 0) return FK_E_INVALID;
    if (c.backoff_max < c.backoff_min || c.backoff_max > BACKOFF_MOST) return FK_E_INVALID;
    *out = c;
    return FK_OK;
}

const char *fk__association_name(fk_association state)
{
    switch (state) {
    case FK_ASSOCIATION_UNRESOLVED: return "unresolved";
    case FK_ASSOCIATION_CONNECTED: return "connected";
    case FK_ASSOCIATION_QUARANTINE: return "quarantine";
    default: return "unknown";
    }
}

const char *fk__authority_reason_name(fk_authority_reason reason)
{
    switch (reason) {
#define FK_AUTHORITY_REASON_TEXT(name, text)                                                       \
    case FK_AUTHORITY_REASON_##name: return text;
        FK_AUTHORITY_REASONS(FK_AUTHORITY_REASON_TEXT)
#undef FK_AUTHORITY_REASON_TEXT
    default: return "unknown";
    }
}
