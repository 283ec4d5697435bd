/* Where things are when nothing else is said. */
#ifndef TUNER_CLI_PATHS_H
#define TUNER_CLI_PATHS_H

#define DEFAULT_DATASET "syncopate.db"

#endif
