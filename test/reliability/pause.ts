/** Lets `ms` pass; less than one only lets others run. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (ms < 1) setImmediate(resolve)
    else setTimeout(resolve, ms)
  })
}
