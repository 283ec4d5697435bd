/* The program's version, as --version prints it and as what it stores is marked with. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define SYNCOPATE_VERSION "0.1.0"
#define SYNCOPATE_DATE    "2026-11-21" /* of the version; manual pages carry it */

#endif
