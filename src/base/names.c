/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - types, operators, collectives and operation names as words; nccl-tests' words where it has them. */
#include <stdio.h>

#include "op_name.h"
#include "quire.h"

static const struct {
    const char *name;
    size_t size;
} types[QUIRE_TYPE_COUNT] = {
    [QUIRE_INT8] = {"int8", 1},         [QUIRE_UINT8] = {"uint8", 1},        [QUIRE_INT32] = {"int32", 4},
    [QUIRE_UINT32] = {"uint32", 4},     [QUIRE_INT64] = {"int64", 8},        [QUIRE_UINT64] = {"uint64", 8},
    [QUIRE_FLOAT16] = {"half", 2},      [QUIRE_FLOAT32] = {"float", 4},      [QUIRE_FLOAT64] = {"double", 8},
    [QUIRE_BFLOAT16] = {"bfloat16", 2}, [QUIRE_FLOAT8_E4M3] = {"f8e4m3", 1}, [QUIRE_FLOAT8_E5M2] = {"f8e5m2", 1},
};

size_t quire_type_size(quire_type_t type)
{
    return (unsigned)type < QUIRE_TYPE_COUNT ? types[type].size : 0;
}

const char *quire_type_name(quire_type_t type)
{
    return (unsigned)type < QUIRE_TYPE_COUNT ? types[type].name : "?";
}

const char *quire_op_name(quire_op_t op)
{
    static const char *const names[QUIRE_OP_COUNT] = {"sum", "prod", "max", "min", "avg"};
    return (unsigned)op < QUIRE_OP_COUNT ? names[op] : "?";
}

const char *quire_collective_name(quire_collective_t collective)
{
    static const char *const names[QUIRE_COLLECTIVE_COUNT] = {"all_reduce", "broadcast", "barrier", "send", "recv"};
    return (unsigned)collective < QUIRE_COLLECTIVE_COUNT ? names[collective] : "?";
}

char *op_name_text(const struct op_name *name, char *text, size_t bytes)
{
    const char *what = quire_collective_name((quire_collective_t)name->collective);
    unsigned long long number = name->sequence, count = name->count;
    const char *type = quire_type_name((quire_type_t)name->type);
    switch (name->collective) {
    case QUIRE_ALL_REDUCE:
        snprintf(text, bytes, "#%llu %s count %llu %s %s", number, what, count, type,
                 quire_op_name((quire_op_t)name->op));
        break;
    case QUIRE_BROADCAST:
        snprintf(text, bytes, "#%llu %s count %llu %s root %u", number, what, count, type, name->root);
        break;
    case QUIRE_SEND:
    case QUIRE_RECV:
        snprintf(text, bytes, "#%llu %s of %llu bytes", number, what, count);
        break;
    default:
        snprintf(text, bytes, "#%llu %s", number, what);
        break;
    }
    return text;
}
