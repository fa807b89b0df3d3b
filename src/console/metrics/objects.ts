/** Objects whose amounts a page adds up. They are read again from time to time: a watch would wake the page too often. */
import { useEffect, useState } from 'preact/hooks'

import type { KubeList, KubeObject } from '#meta/object.ts'

import { RequestError, sendForJson } from '../api/request.ts'
import { sleep } from '../browser/time.ts'
import { isAwake } from '../browser/visibility.ts'
import { itemsOf } from '../lists/follow-objects.ts'
import { withQuery } from '../lists/watch-events.ts'

export interface ReadObjects {
  readonly objects: readonly KubeObject[]
  /** The server has no more than these. */
  readonly isWhole: boolean
  /** Empty: the server sent them. */
  readonly error: string
}

const AGAIN_MS = 60_000
const PAGE = 500

/** Undefined until the server has answered. Without a path nothing is read. */
export function useObjects(path: string | undefined, most: number): ReadObjects | undefined {
  const [read, setRead] = useState<{ readonly path: string; readonly result: ReadObjects }>()
  const awake = isAwake.value
  useEffect(() => {
    if (path === undefined || !awake) return undefined
    const stop = new AbortController()
    const keepReading = async (): Promise<void> => {
      for (;;) {
        const result = await readObjects(path, most, stop.signal)
        setRead({ path, result })
        await sleep(AGAIN_MS, stop.signal)
      }
    }
    keepReading().catch((error: unknown) => {
      if (!stop.signal.aborted) throw error
    })
    return () => stop.abort()
  }, [path, awake])
  return read?.path === path ? read?.result : undefined
}

async function readObjects(path: string, most: number, signal: AbortSignal): Promise<ReadObjects> {
  const objects: KubeObject[] = []
  try {
    for (let next = ''; ;) {
      const target = withQuery(path, { limit: String(PAGE), ...(next !== '' && { continue: next }) })
      const part = await sendForJson<KubeList<KubeObject>>(target, { signal })
      objects.push(...itemsOf(part))
      next = part.metadata.continue ?? ''
      const { remainingItemCount: left = 0 } = part.metadata
      // A list that is too long is not read to its limit.
      if (next === '' || objects.length + left > most || objects.length >= most)
        return { objects, isWhole: next === '', error: '' }
    }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return { objects, isWhole: false, error: error.message }
  }
}
