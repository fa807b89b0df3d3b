/**
 * Sets one fixed seed for property tests, so that every run of the gate draws the same cases. PROPERTY_SEED=random
 * draws new cases; a number draws the cases of that seed.
 */
import fc from 'fast-check'

const wanted = process.env.PROPERTY_SEED ?? '1364'
if (wanted !== 'random') fc.configureGlobal({ seed: Number(wanted) })
