/** Sleeps for `ms`; below one millisecond it only yields to the event loop. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (ms < 1) setImmediate(resolve)
    else setTimeout(resolve, ms)
  })
}
