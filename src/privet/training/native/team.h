/* Work in pieces, on the threads that torch already has.

torch's OpenMP library keeps its threads awake between two operations, so threads of our own would fight them for the
processors. It is not linked: the entry that every OpenMP library of gcc, clang and Intel has is looked up in the
process, and where there is none, one thread does everything. The pieces are handed out one by one, so that the result
does not depend on how many threads come. */

#ifndef PRIVET_TEAM_H
#define PRIVET_TEAM_H

typedef struct {
    void (*piece)(void *work, long piece, int worker);
    void *work;
    long pieces;
    long next;
    int workers;
} team_job;

/* Call piece(work, number, worker) for every number below `pieces`; no two of the calls that run at one time have the
same worker, which is below `threads`. */
void team_run(void (*piece)(void *, long, int), void *work, long pieces, int threads);

#endif
