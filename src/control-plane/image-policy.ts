/**
 * The client with which the admission plugin ImagePolicyWebhook calls its backend. Temporary failures are retried, up
 * to five attempts in all.
 */
import type { ImagePolicy } from '#admission/image-policy-webhook.ts'
import type { ImageReview } from '#apis/imagepolicy/v1alpha1.ts'
import { type ReviewPost, postReview, reviewUrl, WebhookError } from '#apiserver/webhooks/caller.ts'
import { sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { ProgramError } from '#lib/program.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { StatusError } from '#meta/status.ts'

import type { ImagePolicySettings } from './config/admission-plugins.ts'
import type { Environment } from './environment.ts'
import { readWebhookConfig } from './review-client.ts'

const TRIES = 5
const TIMEOUT_MS = 30_000
const BACKOFF_FACTOR = 1.5
const REVIEW = { group: 'imagepolicy.k8s.io', version: 'v1alpha1', kind: 'ImageReview' }

/** Throws ProgramError for an unusable kubeconfig of the backend. */
export async function openImagePolicy(
  { clock, readFile, closing }: Pick<Environment, 'clock' | 'readFile' | 'closing'>,
  { kubeConfigFile, retryBackoffMs, ...policy }: ImagePolicySettings,
): Promise<ImagePolicy> {
  const { url, tls, headers } = await readWebhookConfig(kubeConfigFile, readFile).catch((cause: Error) => {
    const place = 'failed to apply admission: couldn\'t init admission plugin "ImagePolicyWebhook"'
    throw new ProgramError(`${place}: ${cause.message}`, { cause })
  })
  const client = createHttpClient({ clock, tls })
  closing.defer(() => client.close())
  const target = reviewUrl(new URL(url), TIMEOUT_MS)
  return {
    ...policy,
    async send(review, signal) {
      const call: ReviewPost = { body: encodeJson(review), review: REVIEW, timeoutMs: TIMEOUT_MS, signal, headers }
      for (let tries = 1; ; tries++) {
        try {
          return ((await postReview(client, target, call)).object as unknown as ImageReview).status
        } catch (error) {
          if (tries === TRIES || !isTransient(error)) throw error
        }
        await sleep(clock, retryBackoffMs * BACKOFF_FACTOR ** (tries - 1), signal)
      }
    },
  }
}

/** The failures that upstream retries: a reset connection, 429, 500, 504, or a response with Retry-After. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof WebhookError)) return false
  const { cause } = error
  if (cause instanceof HttpError) return (cause.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNRESET'
  if (!(cause instanceof StatusError)) return false
  const { reason = '', details } = cause.status
  const isRetriable = ['InternalError', 'Timeout', 'TooManyRequests'].includes(reason)
  return isRetriable || details?.retryAfterSeconds !== undefined
}
