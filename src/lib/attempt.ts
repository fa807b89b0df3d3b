/** Calls a function and returns undefined if it throws, for features that the platform may lack. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
