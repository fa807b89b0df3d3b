/** Sends events to a webhook: a list in one POST, retried after any error. */
import { exponentialDelayMs, jitteredMs } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { type AuditEvent, eventListText } from './event.ts'
import type { ReportLoss, Sink } from './sink.ts'

export interface WebhookSinkOptions {
  readonly clock: Clock
  readonly random: Random
  /** Sends JSON; rejects unless the response is a 2xx. */
  readonly post: (body: Buffer) => Promise<void>
  /** Closes connections. */
  readonly close: () => void
  /** The backoff before the first retry; it grows by half with each further one. */
  readonly initialBackoffMs: number
  readonly reportLoss: ReportLoss
}

const NAME = 'webhook'
/** Upstream's limits. */
const TRIES = 5
const GROWTH = 1.5
const JITTER = 0.2

export function createWebhookSink(options: WebhookSinkOptions): Sink {
  const stopping = new AbortController()
  return {
    name: NAME,
    isStrict: true,
    async process(events) {
      try {
        await send(options, events, stopping.signal)
        return true
      } catch (error) {
        options.reportLoss(NAME, error, events)
        return false
      }
    },
    close() {
      stopping.abort()
      options.close()
      return Promise.resolve()
    },
  }
}

async function send(
  { clock, random, post, initialBackoffMs }: WebhookSinkOptions,
  events: readonly AuditEvent[],
  signal: AbortSignal,
): Promise<void> {
  const body = Buffer.from(eventListText(events), 'latin1')
  const growth = { baseMs: initialBackoffMs, capMs: Infinity, factor: GROWTH }
  for (let attempt = 0; ; attempt++) {
    try {
      return await post(body)
    } catch (error) {
      if (attempt === TRIES - 1 || signal.aborted) throw error
    }
    await sleep(clock, jitteredMs(random, exponentialDelayMs(growth, attempt), JITTER), signal)
  }
}
