/* Opens devices until one can't be opened, and prints its code and message. C11. */

#include "acl/acl.h"
#include "check.h"

int main(void) {
    uint32_t count = 0;
    CHECK(aclrtGetDeviceCount(&count), ACL_SUCCESS);
    for (uint32_t device = 0; device < count; device++) {
        const aclError code = aclrtSetDevice((int32_t)device);
        if (code != ACL_SUCCESS) {
            const char *text = aclrtGetRecentErrMsg();
            printf("%d %s\n", code, text ? text : "");
            return 0;
        }
    }
    printf("0 %u devices are open\n", count);
    return 0;
}
