#define _GNU_SOURCE
#include "team.h"

#include <dlfcn.h>
#include <stddef.h>

typedef void (*gomp_parallel)(void (*)(void *), void *, unsigned, unsigned);

static void take(void *given)
{
    team_job *job = given;
    int worker = __atomic_fetch_add(&job->workers, 1, __ATOMIC_RELAXED);
    for (;;) {
        long piece = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (piece >= job->pieces)
            return;
        job->piece(job->work, piece, worker);
    }
}

void team_run(void (*piece)(void *, long, int), void *work, long pieces, int threads)
{
    static gomp_parallel parallel = NULL;
    team_job job = {piece, work, pieces, 0, 0};
    if (parallel == NULL)
        *(void **)&parallel = dlsym(RTLD_DEFAULT, "GOMP_parallel");
    if (threads > pieces)
        threads = (int)pieces;
    if (parallel == NULL || threads < 2)
        take(&job);
    else
        parallel(take, &job, (unsigned)threads, 0);
}
