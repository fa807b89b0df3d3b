/** Detects that a cluster has settled: no component has changed an object for a while. */
import { type Clock, realClock, sleep, type VirtualClock } from '#lib/clock.ts'
import { type Span, spanMs } from '#lib/span.ts'
import { type Backend, prefixEnd } from '#storage/backend.ts'

export interface SettleOptions {
  /** How long nothing may change. Default: 10s of virtual time, longer than any first retry; 1s of real time. */
  readonly quiet?: Span
  /** The timeout. Default: an hour of virtual time, a minute of real time. */
  readonly limit?: Span
}

/** Says why the object with this key changes; undefined: not known. */
export type ExplainKey = (key: string) => Promise<string | undefined>

export interface Changes {
  /** The time and key of the last change. */
  readonly last: { readonly atMs: number; readonly key: string }
  readonly clock: Clock
  close(): Promise<void>
}

/** Keys that change periodically. */
const PULSES = ['/registry/leases/', '/registry/events/', '/registry/masterleases/']
const PREFIX = '/registry/'

export function followChanges(backend: Backend, clock: Clock): Changes {
  let last = { atMs: clock.now(), key: '' }
  const stop = new AbortController()
  const follow = async (): Promise<void> => {
    for await (const { events } of backend.watch({ start: PREFIX, end: prefixEnd(PREFIX), signal: stop.signal })) {
      const change = events.findLast(({ key }) => !PULSES.some((pulse) => key.startsWith(pulse)))
      if (change !== undefined) last = { atMs: clock.now(), key: change.key }
    }
  }
  // It ends with the store at the latest.
  const ended = follow().catch(() => undefined)
  return {
    get last() {
      return last
    },
    clock,
    async close() {
      stop.abort()
      await ended
    },
  }
}

/** The time step between two checks. */
const STEP_MS = { virtual: 1000, real: 20 }

export async function settle(
  changes: Changes,
  virtual: VirtualClock | undefined,
  { quiet = virtual ? '10s' : '1s', limit = virtual ? '1h' : '1m' }: SettleOptions,
  explainKey: ExplainKey,
): Promise<void> {
  const { clock } = changes
  const startedMs = clock.now()
  const [quietMs, limitMs] = [spanMs(quiet), spanMs(limit)]
  for (;;) {
    await (virtual ? virtual.advance(Math.min(STEP_MS.virtual, quietMs)) : sleep(realClock, STEP_MS.real))
    const { atMs, key } = changes.last
    if (clock.now() - Math.max(atMs, startedMs) >= quietMs) return
    if (clock.now() - startedMs < limitMs) continue
    const reason = await explainKey(key)
    throw new Error(
      `Cluster did not settle within ${limit}: "${key}" changed last${reason === undefined ? '' : `. ${reason}`}`,
    )
  }
}
