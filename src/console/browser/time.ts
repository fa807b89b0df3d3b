/** The only file of the console that reads the clock of the browser and waits. */

export function now(): number {
  return Date.now()
}

export function random(): number {
  return Math.random()
}

/** Rejects when the signal is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (): void => {
      clearTimeout(timer)
      reject(new Error('Aborted', { cause: signal?.reason }))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', fail)
      resolve()
    }, ms)
    if (signal?.aborted === true) fail()
    else signal?.addEventListener('abort', fail, { once: true })
  })
}

/** Runs a task at intervals until the returned function is called. */
export function every(ms: number, task: () => void): () => void {
  const timer = setInterval(task, ms)
  return () => clearInterval(timer)
}
