/** The port forwards of this session, which the console process keeps open. */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { RequestError, send, sendForJson } from '../api/request.ts'
import { sleep } from '../browser/time.ts'
import { isAwake } from '../browser/visibility.ts'

export interface ForwardTarget {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly port: number
}

export interface Forward extends ForwardTarget {
  readonly id: string
  readonly localPort: number
  readonly link: string
  readonly pod?: string
  readonly openedAt: string
  readonly connections: number
  readonly openConnections: number
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly errors: number
  readonly lastError?: string
}

export interface LoadedForwards {
  /** Undefined until the console has answered. */
  readonly items: readonly Forward[] | undefined
  readonly error: string
}

const PATH = '/ui/forwards'
const AGAIN_MS = 2000

const loaded = signal<LoadedForwards>({ items: undefined, error: '' })

/** Reads them again every two seconds while the page shows them. */
export function useForwards(): ReadonlySignal<LoadedForwards> {
  const awake = isAwake.value
  useEffect(() => {
    if (!awake) return undefined
    const stop = new AbortController()
    const keepReading = async (): Promise<void> => {
      for (;;) {
        await reload(stop.signal)
        await sleep(AGAIN_MS, stop.signal)
      }
    }
    keepReading().catch((error: unknown) => {
      if (!stop.signal.aborted) throw error
    })
    return () => stop.abort()
  }, [awake])
  return loaded
}

async function reload(signal?: AbortSignal): Promise<void> {
  try {
    const { items } = await sendForJson<{ items: readonly Forward[] }>(PATH, { signal })
    loaded.value = { items, error: '' }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    loaded.value = { ...loaded.value, error: error.message }
  }
}

/** Rejects with RequestError. */
export async function openForward({ kind, namespace, name, port }: ForwardTarget): Promise<void> {
  await send(PATH, { method: 'POST', body: { kind, namespace, name, port } })
  await reload()
}

export async function stopForward({ id }: Forward): Promise<void> {
  await send(`${PATH}/${encodeURIComponent(id)}`, { method: 'DELETE' })
  await reload()
}
