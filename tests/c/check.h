/* What the test programs share: a check that says what went wrong and where. */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

#define CHECK(call, expected)                                                                     \
    do {                                                                                          \
        const long check_got = (long)(call);                                                      \
        const long check_expected = (long)(expected);                                             \
        if (check_got != check_expected) {                                                        \
            const char *check_text = aclrtGetRecentErrMsg();                                      \
            fprintf(stderr, "%s:%d: %s is %ld, not %ld\n%s\n", __FILE__, __LINE__, #call,         \
                    check_got, check_expected, check_text ? check_text : "");                     \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

#define CHECK_TRUE(condition) CHECK(!!(condition), 1)

#endif /* CHECK_H */
