/** Loads a component of a separate file of the bundle when it is shown first, as soon as the server has it. */
import type { ComponentType, VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { sleep } from '../browser/time.ts'
import { Notice } from './notice.tsx'

const RETRY_MS = 3000

export interface LazyProps<P> {
  /** The same function in every drawing. */
  readonly load: () => Promise<ComponentType<P>>
  readonly props: P
}

export function Lazy<P>({ load, props }: LazyProps<P>): VNode {
  const [loaded, setLoaded] = useState<{ readonly Component?: ComponentType<P>; readonly failure?: string }>({})
  const attempt = useRef(new AbortController())
  const start = (): void => {
    attempt.current.abort()
    const stop = new AbortController()
    attempt.current = stop
    load().then(
      (Component) => (stop.signal.aborted ? undefined : setLoaded({ Component })),
      (error: unknown) => {
        if (stop.signal.aborted) return
        setLoaded({ failure: String(error) })
        sleep(RETRY_MS, stop.signal).then(start, () => undefined)
      },
    )
  }
  useEffect(() => {
    setLoaded({})
    start()
    return () => attempt.current.abort()
  }, [load])
  const { Component, failure } = loaded
  if (failure !== undefined)
    return (
      <Notice
        title="This part of the page cannot be loaded"
        text="The server may be away, or newer than this page."
        retry={start}
      >
        <p class="notice-text">
          <code>{failure}</code>
        </p>
      </Notice>
    )
  if (Component === undefined) return <p class="loading">Loading …</p>
  return <Component {...(props as P & object)} />
}
