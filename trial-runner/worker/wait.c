/* MPI_Testall with pauses, since a rank that waits inside MPI keeps a processor busy and cannot give up. */
#include "trial-runner/worker/wait.h"

#include "base/clock.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"

void wait_for_all(int n, MPI_Request *requests, MPI_Status *statuses, double limit_us) {
    const double until_us = clock_now_us() + limit_us;
    for (int done = 0;;) {
        MPI_Testall(n, requests, &done, statuses);
        if (done)
            return;
        if (clock_now_us() > until_us)
            report_abort(ST_TRIAL, "a rank died at the end of the run: not all was gathered in %.0f s", limit_us / 1e6);
        pause_once();
    }
}
