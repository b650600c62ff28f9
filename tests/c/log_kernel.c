/* Kernels that log lines of every form, and one whose assertion fails. C11 and C++17, for each CPU. */

#include "hcomm/hcomm_log.h"

#include "copy_params.h"
#include "hcomm/hcomm_kernel.h"

HCOMM_KERNEL(logs_lines) {
    const char *const text = "text";
    const void *const none = 0;
    char longer[300];
    (void)args;
    hcomm_log(HCOMM_LOG_ERROR, "%d|%5d|%-5d|%05d|%+d|% d|%.3d|%*d", -7, 42, 42, -42, 42, 42, 7, 4, 1);
    hcomm_log(HCOMM_LOG_WARN, "%u|%x|%#X|%#o|%08x|%lu|%llu|%zu", 7U, 255U, 255U, 8U, 48879U, 1UL << 40, ~0ULL,
              sizeof longer);
    hcomm_log(HCOMM_LOG_INFO, "%hhd|%hd|%ld|%lld|%jd|%td", 1, -2, -3L, INT64_MIN + 0LL, (intmax_t)5, &longer[7] - longer);
    hcomm_log(HCOMM_LOG_INFO, "%s|%6s|%-6s|%.2s|%c|%p|%%", text, text, text, text, 'c', none);
    hcomm_log(HCOMM_LOG_DEBUG, "%f|%.2f|%8.1f|%g|%f", 1.5, -2.346, 9.96, 1e30, 0.0000004);
    for (unsigned at = 0; at < sizeof longer; at++) {
        longer[at] = (char)('0' + at % 10);
    }
    longer[sizeof longer - 1] = 0;
    hcomm_log(HCOMM_LOG_INFO, "%s", longer);
    hcomm_log(9, "no level");
    assert(longer[0] == '0');
    return (uint32_t)hcomm_log_line(6, "no level") + 10 * (uint32_t)hcomm_log_line(HCOMM_LOG_INFO, 0) == 21 ? 0 : 1;
}

HCOMM_KERNEL(asserts) {
    const CopyParams *param = (const CopyParams *)args;
    assert(param->len == 12345); /* the line of the assertion */
    return 0;
}
