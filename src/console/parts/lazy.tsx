/** Loads a component of a separate file of the bundle when it is shown first. */
import type { ComponentType, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { Notice } from './notice.tsx'

export interface LazyProps<P> {
  /** The same function in every drawing. */
  readonly load: () => Promise<ComponentType<P>>
  readonly props: P
}

export function Lazy<P>({ load, props }: LazyProps<P>): VNode {
  const [loaded, setLoaded] = useState<{ readonly Component?: ComponentType<P>; readonly failure?: string }>({})
  const start = (): void => {
    setLoaded({})
    load().then(
      (Component) => setLoaded({ Component }),
      (error: unknown) => setLoaded({ failure: String(error) }),
    )
  }
  useEffect(start, [load])
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
