/**
 * Sending reviews to a webhook: one POST, tried again with growing pauses when the other side is not to blame for long
 * (no connection, 429, 5xx). Answers are bounded and never believed beyond their `status`.
 */
import type { Clock } from '#lib/clock.ts'
import { sleep } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { HttpError } from '#lib/http/http-error.ts'

/** Sends a review and resolves with the `status` of the answer. Rejects when there is none. */
export type SendReview = (review: object) => Promise<Readonly<Record<string, unknown>>>

export interface ReviewWebhookOptions {
  readonly clock: Clock
  /** With the credentials and authorities of the webhook's kubeconfig. Redirects are not followed. */
  readonly client: HttpClient
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Pauses between tries; upstream's by default: five tries, from half a second, half as long again each time. */
  readonly retryDelaysMs?: readonly number[]
  /** For one try. */
  readonly timeoutMs?: number
}

const RETRY_DELAYS_MS: readonly number[] = [500, 750, 1125, 1688]
const TIMEOUT_MS = 30_000
/** A review answers with a name, groups and a reason. */
const MAX_ANSWER_BYTES = 1 << 20

export function createReviewWebhook(options: ReviewWebhookOptions): SendReview {
  const { clock, retryDelaysMs = RETRY_DELAYS_MS } = options
  return async (review) => {
    const body = JSON.stringify(review)
    for (const delayMs of retryDelaysMs) {
      const outcome = await post(options, body)
      if (outcome.again !== true) return statusOf(outcome.text)
      await sleep(clock, delayMs)
    }
    const last = await post(options, body)
    if (last.again === true) throw new Error(last.text)
    return statusOf(last.text)
  }
}

/** `text` is the answer, or why to try again. */
async function post(
  { client, url, headers = {}, timeoutMs = TIMEOUT_MS }: ReviewWebhookOptions,
  body: string,
): Promise<{ readonly text: string; readonly again?: true }> {
  try {
    const json = { 'content-type': 'application/json', accept: 'application/json' }
    const response = await client.request({ method: 'POST', url, headers: { ...headers, ...json }, body, timeoutMs })
    const text = await response.text(MAX_ANSWER_BYTES)
    if (response.status >= 200 && response.status < 300) return { text }
    const why = `Webhook answered ${response.status}: ${text.slice(0, 256)}`
    if (response.status === 429 || response.status >= 500) return { text: why, again: true }
    throw new Error(why)
  } catch (error) {
    if (error instanceof HttpError && error.code !== 'too-large') return { text: error.message, again: true }
    throw error
  }
}

function statusOf(text: string): Readonly<Record<string, unknown>> {
  const answer: unknown = JSON.parse(text)
  const status: unknown =
    typeof answer === 'object' && answer !== null ? (answer as { status?: unknown }).status : undefined
  if (typeof status !== 'object' || status === null) throw new Error('Webhook answered without a status')
  return status as Record<string, unknown>
}
