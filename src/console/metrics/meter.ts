/** Reads the metrics API every 15 seconds while a page shows the values, and keeps their history for the tab. */
import { type Signal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { RequestError, sendForJson } from '../api/request.ts'
import { isSessionExpired } from '../browser/session.ts'
import { now, sleep } from '../browser/time.ts'
import { isAwake } from '../browser/visibility.ts'
import { EVERY_MS, type Point, withPoint } from './history.ts'
import { type MeterState, stateAfter } from './meter-state.ts'
import { type Reading, readingOf } from './reading.ts'

export interface Metering {
  readonly state: MeterState
  /** The last one, also after a failure. */
  readonly reading?: Reading
  readonly points: readonly Point[]
}

/** The histories of so many pages stay. */
const MAX_METERS = 60

interface Meter {
  readonly path: string
  readonly data: Signal<Metering>
  readAtMs: number
}

const meters = new Map<string, Meter>()

/** `path` names the object or list of the metrics API, with its cluster. */
export function useMetering(path: string): Metering {
  const meter = meterOf(path)
  const [awake, session] = [isAwake.value, isSessionExpired.value]
  useEffect(() => {
    if (!awake) return undefined
    const stop = new AbortController()
    run(meter, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) throw error
    })
    return () => stop.abort()
  }, [meter, awake, session])
  return meter.data.value
}

/** The one used last is the last of the map. */
function meterOf(path: string): Meter {
  const known = meters.get(path)
  const meter = known ?? { path, data: signal<Metering>({ state: { type: 'loading' }, points: [] }), readAtMs: 0 }
  meters.delete(path)
  meters.set(path, meter)
  const [oldest] = meters.keys()
  if (meters.size > MAX_METERS && oldest !== undefined) meters.delete(oldest)
  return meter
}

async function run(meter: Meter, signal: AbortSignal): Promise<void> {
  for (;;) {
    const waitMs = meter.readAtMs + EVERY_MS - now()
    if (waitMs > 0) await sleep(waitMs, signal)
    meter.readAtMs = now()
    meter.data.value = await read(meter, signal)
  }
}

async function read({ path, data }: Meter, signal: AbortSignal): Promise<Metering> {
  try {
    const reading = readingOf(await sendForJson<unknown>(path, { signal }))
    const { points } = data.value
    if (reading === undefined) return { points, state: { type: 'unmeasured' } }
    return { reading, points: withPoint(points, now(), reading), state: { type: 'live' } }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return { ...data.value, state: stateAfter(error) }
  }
}
