/** Opens a client for a webhook from its kubeconfig (`--authorization-webhook-config-file` and others). */
import { createReviewWebhook, type SendReview } from '#auth/credentials/review-webhook.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { ProgramError } from '#lib/program.ts'
import { basicOf, tlsOf } from '#model/kubeconfig/credentials.ts'
import type { UserEntry } from '#model/kubeconfig/entries.ts'
import { problemIn } from '#model/kubeconfig/problems.ts'
import { chooseContext, parseKubeconfig, type ReadText } from '#model/kubeconfig/reading.ts'

export interface WebhookTarget {
  readonly url: string
  readonly tls: ClientTls
  readonly headers: Readonly<Record<string, string>>
}

export interface ReviewClientTools {
  readonly clock: Clock
  readonly readFile: ReadText
}

/** `timeoutMs` of one attempt; upstream's by default. */
export async function createReviewClient(
  file: string,
  { clock, readFile }: ReviewClientTools,
  timeoutMs?: number,
): Promise<SendReview> {
  const { url, tls, headers } = await readWebhookConfig(file, readFile)
  const client = createHttpClient({ clock, tls })
  return createReviewWebhook({ clock, client, url, headers, ...(timeoutMs !== undefined && { timeoutMs }) })
}

/** Reads the current context of a kubeconfig. Throws ProgramError for missing or unsupported settings. */
export async function readWebhookConfig(file: string, readFile: ReadText): Promise<WebhookTarget> {
  try {
    const config = await chooseContext(await parseKubeconfig(await readFile(file), file), {}, problemIn(readFile))
    const { cluster, user } = config
    return { url: cluster.server ?? '', tls: await tlsOf(config, readFile), headers: await headersOf(user, readFile) }
  } catch (cause) {
    throw new ProgramError(`Cannot use the webhook configuration "${file}": ${(cause as Error).message}`, { cause })
  }
}

async function headersOf(user: UserEntry, readFile: ReadText): Promise<Readonly<Record<string, string>>> {
  for (const field of ['exec', 'auth-provider'] as const) {
    if (user[field] !== undefined)
      throw new Error(`"${field}" of a user is not supported; use a certificate or a token`)
  }
  const token = user.token || (user.tokenFile && (await readFile(user.tokenFile)).trim())
  return token ? { authorization: `Bearer ${token}` } : basicOf(user)
}
