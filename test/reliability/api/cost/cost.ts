/**
 * The cost fuzzer: sends large random requests one at a time to a server in a separate process. No request may block
 * the event loop for more than 100 ms of processor time or allocate more than 64 MB.
 */
import { collectionOf, complete } from '../../../refusals/asking.ts'
import { allowUser, ApiProgram, credentials } from '../program.ts'
import { BrokenError, openConnection, RawClient, type RawConnection } from '../raw-http.ts'
import type { CostSample } from './cost-probe.ts'
import { type CostRequest, seriesFor, type Subject, subjects } from './requests.ts'
import { specialSeries } from './specials.ts'

export const MAX_HELD_MS = 100
export const MAX_PEAK_BYTES: number = 64 * 2 ** 20

/**
 * The processor time of `calibrate` on the machine for which the limit of 100 ms is meant: one idle core of a Xeon at
 * 2.5 GHz. The limit grows in proportion on a slower or busier machine.
 */
const REFERENCE_MS = 25

export interface CostOptions {
  readonly seed: number
  /** The number of the first series. */
  readonly first: number
  readonly requests: number
  readonly datastore: string
  readonly progress?: (line: string) => void
}

export interface Measured {
  readonly request: CostRequest
  readonly status: number
  readonly sample: CostSample
  /** Held, as the reference machine would be. */
  readonly heldMs: number
}

export interface CostReport {
  readonly sent: number
  /** Where to go on. */
  readonly nextSeries: number
  readonly statuses: ReadonlyMap<number, number>
  readonly offences: readonly string[]
  readonly slowest: Measured | undefined
  readonly largest: Measured | undefined
  readonly speed: number
}

const FLAGS = [
  '--runtime-config=api/all=true',
  '--max-requests-inflight=10000',
  '--max-mutating-requests-inflight=10000',
]
const PROBE = new URL('cost-probe.ts', import.meta.url).href
/** Requests after which the speed of the machine is measured again. */
const CALIBRATE_EVERY = 50

/** A server that tells what each request costs. */
export class CostServer implements AsyncDisposable {
  readonly program: ApiProgram
  #connection: RawConnection | undefined
  #sent = 0
  /** How many times as long as the reference machine this one takes, at least 1. */
  slowness = 1

  static async start(datastore: string): Promise<CostServer> {
    const program = await ApiProgram.create({ datastore, flags: FLAGS, imports: [PROBE] })
    try {
      await program.start()
      await allowUser(program.target)
      return new CostServer(program)
    } catch (error) {
      await program.close()
      throw error
    }
  }

  constructor(program: ApiProgram) {
    this.program = program
  }

  /** `isConfirming` measures the speed of the machine before and after the request, because it changes within seconds. */
  async measure(request: CostRequest, isConfirming = false): Promise<Measured> {
    if (isConfirming || this.#sent % CALIBRATE_EVERY === 0) await this.#calibrate()
    this.#sent++
    const slownessBefore = this.slowness
    if (this.#connection?.isOpen !== true) this.#connection = await openConnection(this.program.target)
    await this.program.ask('begin')
    const { status } = await this.#connection.send(request).catch((error: unknown) => {
      if (!(error instanceof BrokenError) || !this.program.isRunning) throw error
      this.#connection?.close()
      return { status: 0 }
    })
    const sample = (await this.program.ask('end')) as CostSample
    if (isConfirming) await this.#calibrate()
    return { request, status, sample, heldMs: sample.heldMs / Math.max(slownessBefore, this.slowness) }
  }

  async #calibrate(): Promise<void> {
    this.slowness = Math.max(1, ((await this.program.ask('calibrate')) as number) / REFERENCE_MS)
  }

  /** Stores what the valid objects of the cases refer to. */
  async prepare(all: readonly Subject[]): Promise<void> {
    const client = new RawClient(this.program.target, credentials('root'))
    for (const { kind, object } of all.flatMap(({ cases }) => cases.given ?? [])) {
      const body = JSON.stringify(complete(kind, object))
      await client.send({ method: 'POST', path: collectionOf(kind, object), body })
    }
    client.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection?.close()
    await this.program.close()
  }
}

/** How often a series that offends is sent again: a limit is broken when it is broken each time. */
const CONFIRMATIONS = 5

/** Every request of a series with its cost, the least of several tries when one breaks a limit. */
export async function measureSeries(server: CostServer, series: readonly CostRequest[]): Promise<Measured[]> {
  const once = async (isConfirming: boolean): Promise<Measured[]> => {
    const all: Measured[] = []
    for (const request of series) all.push(await server.measure(request, isConfirming))
    return all
  }
  let best = await once(false)
  for (let again = 0; again < CONFIRMATIONS && best.some(isOffence); again++) {
    const next = await once(true)
    best = best.map((one, at) => {
      const other = next[at] as Measured
      const least = { ...one.sample, peakBytes: Math.min(one.sample.peakBytes, other.sample.peakBytes) }
      return other.heldMs < one.heldMs
        ? { ...other, sample: { ...other.sample, ...pickPeak(least) } }
        : { ...one, sample: least }
    })
  }
  return best
}

function pickPeak({ peakBytes }: CostSample): Pick<CostSample, 'peakBytes'> {
  return { peakBytes }
}

export function isOffence({ heldMs, sample }: Measured): boolean {
  return heldMs > MAX_HELD_MS || sample.peakBytes > MAX_PEAK_BYTES
}

export async function runCost({ seed, first, requests, datastore, progress }: CostOptions): Promise<CostReport> {
  await using server = await CostServer.start(datastore)
  const all = subjects()
  await server.prepare(all)
  const run = new CostRun(progress)
  if (first === 0) for (const series of specialSeries()) run.add('special', await measureSeries(server, series))
  let number = first
  for (; run.sent < requests; number++) {
    run.add(`series ${number}`, await measureSeries(server, seriesFor(all, seed, number)))
  }
  return run.report(number, server.slowness)
}

class CostRun {
  readonly #progress: ((line: string) => void) | undefined
  readonly #statuses = new Map<number, number>()
  readonly #offences: string[] = []
  #slowest: Measured | undefined
  #largest: Measured | undefined
  sent = 0

  constructor(progress: ((line: string) => void) | undefined) {
    this.#progress = progress
  }

  add(name: string, measured: readonly Measured[]): void {
    for (const one of measured) {
      this.sent++
      this.#statuses.set(one.status, (this.#statuses.get(one.status) ?? 0) + 1)
      if (one.heldMs > (this.#slowest?.heldMs ?? 0)) this.#slowest = one
      if (one.sample.peakBytes > (this.#largest?.sample.peakBytes ?? 0)) this.#largest = one
      if (!isOffence(one)) continue
      const line = `${name}: ${lineOf(one)}`
      this.#offences.push(line)
      this.#progress?.(line)
    }
  }

  report(nextSeries: number, slowness: number): CostReport {
    return {
      sent: this.sent,
      nextSeries,
      statuses: this.#statuses,
      offences: this.#offences,
      slowest: this.#slowest,
      largest: this.#largest,
      speed: 1 / slowness,
    }
  }
}

export function lineOf({ request, status, sample, heldMs }: Measured): string {
  const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MB`
  const bytes = typeof request.body === 'string' ? Buffer.byteLength(request.body) : (request.body?.length ?? 0)
  return [
    `held ${heldMs.toFixed(0)} ms (${sample.heldMs.toFixed(0)} on this machine)`,
    `${megabytes(sample.peakBytes)} (${megabytes(sample.allocatedBytes)} in all)`,
    `${request.method ?? 'GET'} ${request.path.slice(0, 120)} ${request.headers?.['content-type'] ?? ''}`,
    `${bytes} bytes, ${status}`,
    request.about,
  ].join('; ')
}
