/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/base.h"

#define FK_STRINGIFY_(x) #x
#define FK_STRINGIFY(x)  FK_STRINGIFY_(x)

__attribute__((weak)) _Noreturn void fk__assert_failed(const char *file, int line)
{
    (void)file;
    (void)line;
    __builtin_trap();
}

const char *fk_err_text(fk_err err)
{
    switch (err) {
#define FK_ERR_TEXT(name, number, text)                                                            \
    case FK_##name: return text;
        FK_ERRORS(FK_ERR_TEXT)
#undef FK_ERR_TEXT
    }
    return "unknown error";
}

const char *fk_err_name(fk_err err)
{
    switch (err) {
#define FK_ERR_NAME(name, number, text)                                                            \
    case FK_##name: return "FK_" #name;
        FK_ERRORS(FK_ERR_NAME)
#undef FK_ERR_NAME
    }
    return "FK_E_UNKNOWN";
}

const char *fk_version(void)
{
    return FK_STRINGIFY(FK_VERSION_MAJOR) "." FK_STRINGIFY(FK_VERSION_MINOR) "." FK_STRINGIFY(
        FK_VERSION_PATCH);
}

fk_str fk_str_of(const char *text)
{
    size_t len = 0;
    while (text != NULL && text[len] != '\0') len++;
    return (fk_str){ text, len };
}
