/** Calls a function that uses an optional platform feature, and returns undefined if it throws. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
