/**
 * Reads data of a page once from the server, and again on demand or until the server is back. A later failure keeps the
 * earlier data.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { sleep } from '../browser/time.ts'

export interface Loaded<T> {
  /** Undefined until the server has answered. */
  readonly value: T | undefined
  /** Of the last attempt. */
  readonly error: RequestError | undefined
  readonly reload: () => void
}

interface Answer<T> {
  readonly key: string
  readonly value?: T | undefined
  readonly error?: RequestError
}

/** The server cannot be reached, or a proxy in front of it says so. */
const AWAY: ReadonlySet<number> = new Set([0, 502, 503, 504])
const RETRY_MS = 3000

/** Reads again when the key changes. `load` rejects with RequestError, or with anything after its signal was aborted. */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [answer, setAnswer] = useState<Answer<T>>()
  const current = useRef(new AbortController())
  const reload = useCallback((): void => {
    current.current.abort()
    const stop = new AbortController()
    current.current = stop
    load(stop.signal).then(
      (value) => (stop.signal.aborted ? undefined : setAnswer({ key, value })),
      (error: unknown) => {
        if (stop.signal.aborted) return
        if (!(error instanceof RequestError)) throw error
        setAnswer((before) => ({ key, value: before?.key === key ? before.value : undefined, error }))
        if (AWAY.has(error.code)) sleep(RETRY_MS, stop.signal).then(reload, () => undefined)
      },
    )
  }, [key])
  useEffect(() => {
    reload()
    return () => current.current.abort()
  }, [reload])
  const { value, error } = answer?.key === key ? answer : {}
  return { value, error, reload }
}
