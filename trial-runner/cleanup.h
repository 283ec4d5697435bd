/* Clear away what a program left: processes and files. These functions do not use the heap, so a forked child of a
 * process with many threads may call them: another thread may have held the allocator's locks at the fork. */
#ifndef TRIAL_RUNNER_CLEANUP_H
#define TRIAL_RUNNER_CLEANUP_H

/* Kill all descendants of this process, which must be a child subreaper (prctl(2)), and reap its children. */
void cleanup_descendants(void);

/* Remove a folder and what is in it, but for what is mounted there and for what lies more than 64 folders deep. What is
 * not there is passed over, and so is an empty path. */
void cleanup_folder(const char *path);

#endif
