/**
 * Sends token and access reviews to the API server, for programs that delegate authentication and authorization to it.
 */
import type { SendReview } from '#auth/credentials/review-webhook.ts'
import type { ApiClient } from '#client/api-client.ts'

const MAX_REVIEW_BYTES = 1 << 20

/** Sends a review to the API server. */
export function reviewing(client: ApiClient, group: string, resource: string): SendReview {
  return async (body) => {
    const answer = await client.ask({ method: 'POST', path: `/apis/${group}.k8s.io/v1/${resource}`, body })
    return (JSON.parse(await answer.text(MAX_REVIEW_BYTES)) as { status: Readonly<Record<string, unknown>> }).status
  }
}
