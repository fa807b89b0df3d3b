/**
 * Runs the task for all values, at most `width` at a time. Returns the results in the order of the values. The first
 * failure ends it; tasks that run already go on.
 */
export async function inParallel<T, R>(
  values: readonly T[],
  width: number,
  task: (value: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  let hasFailed = false
  const work = async (): Promise<void> => {
    while (next < values.length && !hasFailed) {
      const at = next++
      try {
        results[at] = await task(values[at] as T)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, values.length) }, work))
  return results
}
