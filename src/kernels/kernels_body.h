/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_body.h - the folds, once, compiled for each instruction set: plain loops that the compiler vectorises. Every
 * operation is element-wise, so the bits don't depend on the vector width. The including file defines
 *   BODY_TARGET     attributes of every function
 *   BODY_FOLD       the name of the fold it makes
 *   BODY_HALF_IN, BODY_HALF_OUT  tile conversions of float16: (float *, const uint16_t *, n) and back
 * No include guard: it is meant to be included once per file.
 *
 * A NaN result is always the quiet NaN 0x7fc00000 (float64: 0x7ff8...): which of two NaNs an addition keeps depends on
 * the order of its operands, which compilers may swap.
 *
 * Rows are pairs of pointers of any alignment; dst may be exactly one of the sources, hence "ivdep", never restrict.
 */

typedef int8_t body_i8 __attribute__((aligned(1), may_alias));
typedef uint8_t body_u8 __attribute__((aligned(1), may_alias));
typedef int16_t body_i16 __attribute__((aligned(1), may_alias));
typedef uint16_t body_u16 __attribute__((aligned(1), may_alias));
typedef int32_t body_i32 __attribute__((aligned(1), may_alias));
typedef uint32_t body_u32 __attribute__((aligned(1), may_alias));
typedef int64_t body_i64 __attribute__((aligned(1), may_alias));
typedef uint64_t body_u64 __attribute__((aligned(1), may_alias));
typedef float body_f32 __attribute__((aligned(1), may_alias));
typedef double body_f64 __attribute__((aligned(1), may_alias));

#if defined(__clang__)
#define BODY_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define BODY_LOOP _Pragma("GCC ivdep")
#endif

enum {
    BODY_TILE = 512, /* elements of a tile: 2 KiB of float32, several fit into the first-level cache */
    BODY_LEVELS = 7, /* 64 sources need 6 levels of partial results */
    BODY_ELEM_MAX = 8
};

typedef void (*body_row)(void *dst, const void *a, const void *b, size_t n);

#define BODY_ROW(name, type, expression)                                                                               \
    BODY_TARGET static void name(void *dst, const void *left, const void *right, size_t n)                             \
    {                                                                                                                  \
        type *d = dst;                                                                                                 \
        const type *l = left, *r = right;                                                                              \
        BODY_LOOP                                                                                                      \
        for (size_t i = 0; i < n; i++) {                                                                               \
            __typeof__(d[0] + 0) a = l[i], b = r[i];                                                                   \
            d[i] = (type)(expression);                                                                                 \
        }                                                                                                              \
    }

/* Integers: unsigned arithmetic wraps, and gives the same bits for both signs. */
#define BODY_INTEGER(bits)                                                                                             \
    BODY_ROW(sum_##bits, body_u##bits, (body_u##bits)a + (body_u##bits)b)                                              \
    BODY_ROW(prod_##bits, body_u##bits, (uint64_t)a *(uint64_t)b)                                                      \
    BODY_ROW(max_i##bits, body_i##bits, a > b ? a : b)                                                                 \
    BODY_ROW(min_i##bits, body_i##bits, a < b ? a : b)                                                                 \
    BODY_ROW(max_u##bits, body_u##bits, a > b ? a : b)                                                                 \
    BODY_ROW(min_u##bits, body_u##bits, a < b ? a : b)

BODY_INTEGER(8)
BODY_INTEGER(32)
BODY_INTEGER(64)

/* Equal values have equal bits, but for zeros: and gives +0, or gives -0. */
#define BODY_FLOAT(name, real, word, quiet)                                                                            \
    BODY_TARGET static inline real name##_of(word bits)                                                                \
    {                                                                                                                  \
        real value;                                                                                                    \
        memcpy(&value, &bits, sizeof(value));                                                                          \
        return value;                                                                                                  \
    }                                                                                                                  \
    BODY_TARGET static inline word name##_bits(real value)                                                             \
    {                                                                                                                  \
        word bits;                                                                                                     \
        memcpy(&bits, &value, sizeof(bits));                                                                           \
        return bits;                                                                                                   \
    }                                                                                                                  \
    BODY_TARGET static inline real name##_clean(real value)                                                            \
    {                                                                                                                  \
        return value == value ? value : name##_of(quiet);                                                              \
    }                                                                                                                  \
    BODY_TARGET static inline real name##_max(real a, real b)                                                          \
    {                                                                                                                  \
        real larger = a > b ? a : b;                                                                                   \
        real value = a == b ? name##_of(name##_bits(a) & name##_bits(b)) : larger;                                     \
        return a != a || b != b ? name##_of(quiet) : value;                                                            \
    }                                                                                                                  \
    BODY_TARGET static inline real name##_min(real a, real b)                                                          \
    {                                                                                                                  \
        real smaller = a < b ? a : b;                                                                                  \
        real value = a == b ? name##_of(name##_bits(a) | name##_bits(b)) : smaller;                                    \
        return a != a || b != b ? name##_of(quiet) : value;                                                            \
    }                                                                                                                  \
    BODY_ROW(sum_##name, body_##name, name##_clean(a + b))                                                             \
    BODY_ROW(prod_##name, body_##name, name##_clean(a *b))                                                             \
    BODY_ROW(max_##name, body_##name, name##_max(a, b))                                                                \
    BODY_ROW(min_##name, body_##name, name##_min(a, b))

BODY_FLOAT(f32, float, uint32_t, UINT32_C(0x7fc00000))
BODY_FLOAT(f64, double, uint64_t, UINT64_C(0x7ff8000000000000))

/* [type][operator]; narrow floats use float32's. An average is a sum until it is finished. */
static const body_row body_rows[QUIRE_TYPE_COUNT][QUIRE_OP_COUNT] = {
    [QUIRE_INT8] = {sum_8, prod_8, max_i8, min_i8, sum_8},
    [QUIRE_UINT8] = {sum_8, prod_8, max_u8, min_u8, sum_8},
    [QUIRE_INT32] = {sum_32, prod_32, max_i32, min_i32, sum_32},
    [QUIRE_UINT32] = {sum_32, prod_32, max_u32, min_u32, sum_32},
    [QUIRE_INT64] = {sum_64, prod_64, max_i64, min_i64, sum_64},
    [QUIRE_UINT64] = {sum_64, prod_64, max_u64, min_u64, sum_64},
    [QUIRE_FLOAT16] = {sum_f32, prod_f32, max_f32, min_f32, sum_f32},
    [QUIRE_FLOAT32] = {sum_f32, prod_f32, max_f32, min_f32, sum_f32},
    [QUIRE_FLOAT64] = {sum_f64, prod_f64, max_f64, min_f64, sum_f64},
    [QUIRE_BFLOAT16] = {sum_f32, prod_f32, max_f32, min_f32, sum_f32},
    [QUIRE_FLOAT8_E4M3] = {sum_f32, prod_f32, max_f32, min_f32, sum_f32},
    [QUIRE_FLOAT8_E5M2] = {sum_f32, prod_f32, max_f32, min_f32, sum_f32},
};

/* ---- averages ---------------------------------------------------------------------------------------------------- */

#define BODY_DIVIDE(name, type, divisor)                                                                               \
    BODY_TARGET static void name(void *data, size_t n, int ranks)                                                      \
    {                                                                                                                  \
        type *d = data;                                                                                                \
        BODY_LOOP                                                                                                      \
        for (size_t i = 0; i < n; i++)                                                                                 \
            d[i] = (type)(d[i] / (divisor)ranks);                                                                      \
    }

BODY_DIVIDE(divide_i8, body_i8, int32_t)
BODY_DIVIDE(divide_u8, body_u8, uint32_t)
BODY_DIVIDE(divide_i32, body_i32, int64_t)
BODY_DIVIDE(divide_u32, body_u32, uint64_t)
BODY_DIVIDE(divide_i64, body_i64, int64_t)
BODY_DIVIDE(divide_u64, body_u64, uint64_t)
BODY_DIVIDE(divide_f32, body_f32, float)
BODY_DIVIDE(divide_f64, body_f64, double)

typedef void (*body_divide)(void *data, size_t n, int ranks);

static const body_divide body_divides[QUIRE_TYPE_COUNT] = {
    [QUIRE_INT8] = divide_i8,      [QUIRE_UINT8] = divide_u8,        [QUIRE_INT32] = divide_i32,
    [QUIRE_UINT32] = divide_u32,   [QUIRE_INT64] = divide_i64,       [QUIRE_UINT64] = divide_u64,
    [QUIRE_FLOAT16] = divide_f32,  [QUIRE_FLOAT32] = divide_f32,     [QUIRE_FLOAT64] = divide_f64,
    [QUIRE_BFLOAT16] = divide_f32, [QUIRE_FLOAT8_E4M3] = divide_f32, [QUIRE_FLOAT8_E5M2] = divide_f32,
};

/* ---- narrow floats ----------------------------------------------------------------------------------------------- */

BODY_TARGET static void widen_tile(quire_type_t type, float *to, const void *from, size_t n)
{
    if (type == QUIRE_FLOAT16) {
        BODY_HALF_IN(to, from, n);
    } else if (type == QUIRE_BFLOAT16) {
        const body_u16 *f = from;
        BODY_LOOP
        for (size_t i = 0; i < n; i++)
            to[i] = convert_bfloat16_in(f[i]);
    } else {
        const float *table = type == QUIRE_FLOAT8_E4M3 ? kernel_table_e4m3() : kernel_table_e5m2();
        const body_u8 *f = from;
        for (size_t i = 0; i < n; i++)
            to[i] = table[f[i]];
    }
}

BODY_TARGET static void narrow_tile(quire_type_t type, void *to, const float *from, size_t n)
{
    if (type == QUIRE_FLOAT16) {
        BODY_HALF_OUT(to, from, n);
    } else if (type == QUIRE_BFLOAT16) {
        body_u16 *t = to;
        BODY_LOOP
        for (size_t i = 0; i < n; i++)
            t[i] = convert_bfloat16_out(from[i]);
    } else if (type == QUIRE_FLOAT8_E4M3) {
        body_u8 *t = to;
        for (size_t i = 0; i < n; i++)
            t[i] = convert_e4m3_out(from[i]);
    } else {
        body_u8 *t = to;
        for (size_t i = 0; i < n; i++)
            t[i] = convert_e5m2_out(from[i]);
    }
}

/* ---- folds ------------------------------------------------------------------------------------------------------- */

struct body_call {
    quire_type_t type;
    body_row row;
    size_t elem;
    bool narrow;
    const void *const *src;
    size_t first, n; /* elements of the present tile */
    uint8_t tiles[BODY_LEVELS][2][BODY_TILE * BODY_ELEM_MAX] __attribute__((aligned(64)));
};

/* The fold of sources [lo,hi) of the present tile: a source itself, or `to` (room for a tile). */
BODY_TARGET static const void *fold_range(struct body_call *c, int lo, int hi, int level, void *to)
{
    if (hi - lo == 1) {
        const uint8_t *from = (const uint8_t *)c->src[lo] + c->first * c->elem;
        if (!c->narrow)
            return from;
        widen_tile(c->type, to, from, c->n);
        return to;
    }
    int mid = lo + (hi - lo) / 2;
    const void *left = fold_range(c, lo, mid, level + 1, c->tiles[level][0]);
    const void *right = fold_range(c, mid, hi, level + 1, c->tiles[level][1]);
    c->row(to, left, right, c->n);
    return to;
}

BODY_TARGET static void fold_tiles(struct body_call *c, void *dst, void *also, int n, size_t count, int divide)
{
    uint8_t wide[BODY_TILE * BODY_ELEM_MAX] __attribute__((aligned(64)));
    for (c->first = 0; c->first < count; c->first += c->n) {
        c->n = count - c->first < BODY_TILE ? count - c->first : BODY_TILE;
        uint8_t *to = (uint8_t *)dst + c->first * c->elem;
        void *into = c->narrow ? (void *)wide : (void *)to;
        const void *result = fold_range(c, 0, n, 0, into);
        if (result != into)
            memmove(into, result, c->n * c->elem);
        if (n == 1 && c->narrow)
            max_f32(into, into, into, c->n); /* makes a NaN the one that additions would have left */
        if (divide != 0)
            body_divides[c->type](into, c->n, divide);
        if (c->narrow)
            narrow_tile(c->type, to, (const float *)(const void *)wide, c->n);
        if (also != NULL)
            memcpy((uint8_t *)also + c->first * c->elem, to, c->n * c->elem);
    }
}

BODY_TARGET void BODY_FOLD(quire_type_t type, quire_op_t op, void *dst, void *also, const void *const *src, int n,
                           size_t count, int ranks)
{
    int divide = op == QUIRE_AVG && ranks > 0 ? ranks : 0;
    bool narrow =
        type == QUIRE_FLOAT16 || type == QUIRE_BFLOAT16 || type == QUIRE_FLOAT8_E4M3 || type == QUIRE_FLOAT8_E5M2;
    if (n == 1 && divide == 0 && also == NULL) {
        memmove(dst, src[0], count * quire_type_size(type));
        return;
    }
    if (n == 2 && !narrow && divide == 0 && also == NULL) {
        body_rows[type][op](dst, src[0], src[1], count);
        return;
    }
    struct body_call c;
    c.type = type;
    c.row = body_rows[type][op];
    c.elem = quire_type_size(type);
    c.narrow = narrow;
    c.src = src;
    fold_tiles(&c, dst, also, n, count, divide);
}
