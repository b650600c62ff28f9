#ifndef STANDIN_EXEC_OP_H
#define STANDIN_EXEC_OP_H

#include "common.h"

int32_t ExecOp(const Param &param, const Resources &resources);

#endif
