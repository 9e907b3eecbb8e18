/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The smallest user of an installed fraktor; compiled as C and as C++. */

#include <fraktor/fraktor.h>

#include <stdio.h>

int main(void)
{
    puts(fk_version());
    return fk_version()[0] ? 0 : 1;
}
