/* What the functions that read the environment answer. C11 and C++17.
 *
 *   environment      prints the codes of aclrtSetDevice, HcclCommInitAll and HcclGetHcclBuffer, and the first message
 */

#include "acl/acl.h"
#include "check.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"

int main(void) {
    int32_t device = 0;
    HcclComm comm = NULL;
    void *buffer;
    uint64_t size;
    const int set = aclrtSetDevice(device);
    const int init = set != 0 ? -1 : (int)HcclCommInitAll(1, &device, &comm);
    const int get = init != 0 ? -1 : (int)HcclGetHcclBuffer(comm, &buffer, &size);
    const char *text = aclrtGetRecentErrMsg();
    printf("%d %d %d %s\n", set, init, get, text ? text : "");
    return 0;
}
