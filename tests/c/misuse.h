/* What the parts of misuse.c share. */

#ifndef MISUSE_H
#define MISUSE_H

#include <string.h>

#include "acl/acl.h"
#include "check.h"
#include "copy_params.h"
#include "hccl/hccl_channel.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_launch.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"
#include "hcomm/hcomm_log.h"
#include "hcomm/hcomm_res.h"

enum { POLICY = ACL_MEM_MALLOC_HUGE_FIRST };

#define MALLOC(ptr, size) aclrtMalloc(ptr, size, (aclrtMemMallocPolicy)POLICY)
/* Numbers that no handle is. */
#define WRONG ((void *)0x1234)
/* What an out-pointer points to, to see that a refused call does not write it. */
#define UNTOUCHED ((void *)0x7777)

#endif /* MISUSE_H */
