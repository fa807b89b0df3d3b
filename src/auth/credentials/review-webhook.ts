/**
 * Sends reviews to a webhook, with retries after temporary failures. Answers are bounded in size, and only their
 * `status` is used.
 */
import type { Clock } from '#lib/clock.ts'
import { sleep } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { HttpError } from '#lib/http/http-error.ts'

/** Sends a review and resolves with the `status` of the answer. Rejects if there is none. */
export type SendReview = (review: object) => Promise<Readonly<Record<string, unknown>>>

export interface ReviewWebhookOptions {
  readonly clock: Clock
  /** Has the credentials and authorities of the webhook's kubeconfig and follows no redirects. */
  readonly client: HttpClient
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** The pauses between attempts. Upstream's default: five attempts, starting with half a second, growing by half. */
  readonly retryDelaysMs?: readonly number[]
  /** The timeout of one attempt. */
  readonly timeoutMs?: number
}

const RETRY_DELAYS_MS: readonly number[] = [500, 750, 1125, 1688]
const TIMEOUT_MS = 30_000
/** The maximum size of an answer: a review contains a name, groups and a reason. */
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

/** `text` is the answer, or the reason for a retry. */
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
