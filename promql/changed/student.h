/*
 * Student: tails of the t and the binomial distribution.
 *
 * Both are the regularized incomplete beta function, which is computed by its continued fraction.
 *
 * Errors:    none; arguments outside of a distribution's domain give 1, "nothing can be said".
 * Threads:   pure.
 * Source:    DLMF 8.17 (8.17.22 is the fraction; evaluated as Lentz does), 8.17(vi) for binomials;
 *            Abramowitz and Stegun 26.7.1 for Student's t.
 */
#ifndef PROMQL_CHANGED_STUDENT_H
#define PROMQL_CHANGED_STUDENT_H

/* I_x(a, b); 0 <= x <= 1, a and b > 0. */
double beta_regularized(double a, double b, double x);
/* P(|T| >= t) with `freedom` degrees of freedom, which need not be whole. */
double student_two_sided(double t, double freedom);
/*
 * P(K >= k) where K counts successes of n tries with chance p; k and n need not be whole, for
 * counts that were divided by their overdispersion.
 */
double binomial_at_least(double k, double n, double p);
/*
 * The t that T exceeds with the chance `tail`, 0 < tail < 0.5, to ten digits; INFINITY: without
 * degrees of freedom.
 */
double student_beyond(double tail, double freedom);

#endif
