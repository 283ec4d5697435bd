/* LAPACK's Cholesky factorisation, out of OpenBLAS, which has LAPACK in it: liblapacke would load four more libraries,
 * a ninth of the program's start. Matrices are column-major, of n rows with leading dimension `leading`, lower
 * triangles. What returns an int returns LAPACK's info, 0 where all is well. */
#ifndef TUNER_SEARCH_CHOLESKY_H
#define TUNER_SEARCH_CHOLESKY_H

#include <stddef.h>

/* Fortran's, each with the hidden length of `uplo`. */
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t uplo_length);
void dpotrs_(const char *uplo, const int *n, const int *columns, const double *a, const int *lda, double *b,
             const int *ldb, int *info, size_t uplo_length);
void dpotri_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t uplo_length);

/* `a` becomes its factor; above 0 where it is not positive definite. */
static inline int cholesky_factorise(size_t n, double *a, size_t leading) {
    int order = (int)n, lda = (int)leading, info = 0;
    dpotrf_("L", &order, a, &lda, &info, 1);
    return info;
}

/* b (n) becomes x with A x = b, of the factor of A. */
static inline int cholesky_solve(size_t n, const double *factor, size_t leading, double *b) {
    int order = (int)n, one = 1, lda = (int)leading, info = 0;
    dpotrs_("L", &order, &one, factor, &lda, b, &lda, &info, 1);
    return info;
}

/* The factor of A becomes the inverse of A. */
static inline int cholesky_invert(size_t n, double *factor, size_t leading) {
    int order = (int)n, lda = (int)leading, info = 0;
    dpotri_("L", &order, factor, &lda, &info, 1);
    return info;
}

#endif
