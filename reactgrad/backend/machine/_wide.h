#ifndef REACTGRAD_WIDE
#define REACTGRAD_WIDE

/* Compiled for wider registers, too, where the loader can choose: the operations, and so the bits, are the same. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#endif
