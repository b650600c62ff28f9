/* A process in the old memory layout (`ulimit -s unlimited`, `setarch -L`), in which memory of the host lies between the device
 * memory of two devices. C11 and C++17, Linux.
 *
 *   old_layout      starts itself again in that layout
 */

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

#define LEN ((size_t)1 << 20)
/* Where the device memory of slot 0 begins, and how far the slots go. */
static const uintptr_t FIRST = 0x12c000000000, STRIDE = (uintptr_t)1 << 40, SLOTS = 64;

int main(int argc, char **argv) {
    if (argc == 1) {
        char again[] = "again", *const arguments[] = {argv[0], again, NULL};
        CHECK_TRUE(personality(ADDR_COMPAT_LAYOUT) != -1);
        CHECK(execv("/proc/self/exe", arguments), 0);
    }
    void *on_device, *gone;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK(aclrtMalloc(&gone, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtMalloc(&on_device, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    /* A large block gets a mapping of its own, whatever the allocator has learned from blocks freed before. */
    CHECK_TRUE(mallopt(M_MMAP_THRESHOLD, LEN / 2) == 1);
    unsigned char *from = (unsigned char *)malloc(LEN), *to = (unsigned char *)calloc(LEN, 1);
    CHECK_TRUE(from != NULL && to != NULL);
    const uintptr_t heap = (uintptr_t)from;
    CHECK_TRUE(FIRST <= heap && heap < FIRST + SLOTS * STRIDE);
    memset(from, 7, LEN);

    CHECK(aclrtMemcpy(on_device, LEN, from, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    CHECK(aclrtMemcpy(to, LEN, on_device, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(from, to, LEN), 0);
    memset(to, 0, LEN);
    CHECK(aclrtMemcpy(to, LEN, from, LEN, ACL_MEMCPY_HOST_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(from, to, LEN), 0);

    /* Memory of the host is none of the device's. */
    CHECK(aclrtFree(from), ACL_ERROR_INVALID_PARAM);
    /* A page of the host just before that of the device. */
    void *const page = mmap((void *)((uintptr_t)FIRST), 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK_TRUE(page == (void *)FIRST);
    CHECK(aclrtMemcpy(page, 4096, on_device, 4096, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(page, from, 4096), 0);

    /* Memory of a closed device is not allocated, and using it is an error. */
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtMemcpy(gone, LEN, from, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "a device that is not open") != NULL);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    free(from);
    free(to);
    printf("host memory is the host's\n");
    return 0;
}
