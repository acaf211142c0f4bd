/* AES-256 in counter mode, by the processor's own instructions.

Noise needs the key stream in pieces that several threads make and use at once, without a copy in memory; the library's
cipher cannot be called from there. The bytes are those of privet.core.random.keystream. */

#ifndef PRIVET_CIPHER_H
#define PRIVET_CIPHER_H

#include <stdint.h>

#define CIPHER_ROUNDS 15
#define CIPHER_BLOCK 16

typedef struct {
    _Alignas(16) uint8_t rounds[CIPHER_ROUNDS][CIPHER_BLOCK];
} cipher_key;

/* Whether this processor has the instructions. */
int cipher_here(void);
void cipher_expand(const uint8_t key[32], cipher_key *to);
/* Overwrite `out` with so many blocks of the stream, from block `first` on. */
void cipher_stream(const cipher_key *key, uint64_t first, long blocks, uint8_t *out);
/* Without the widest registers, if `is_narrow`. */
void cipher_choose(int is_narrow);
void cipher_forget(cipher_key *key);

#endif
