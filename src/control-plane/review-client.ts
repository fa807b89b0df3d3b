/** The kubeconfig of a webhook (`--authorization-webhook-config-file` and the like): where it is and who we are to it. */
import { dirname, isAbsolute, join } from 'node:path'

import { createReviewWebhook, type SendReview } from '#apiserver/credentials/review-webhook.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { ProgramError } from '#lib/program.ts'
import { parseYaml } from '#lib/yaml.ts'

type Entry = Readonly<Record<string, unknown>>

export interface WebhookTarget {
  readonly url: string
  readonly tls: ClientTls
  readonly headers: Readonly<Record<string, string>>
}

export interface ReviewClientTools {
  readonly clock: Clock
  readonly readFile: (path: string) => Promise<string>
}

/** `timeoutMs` is for one try; default: upstream's. */
export async function createReviewClient(
  file: string,
  { clock, readFile }: ReviewClientTools,
  timeoutMs?: number,
): Promise<SendReview> {
  const { url, tls, headers } = await readWebhookConfig(file, readFile)
  const client = createHttpClient({ clock, tls })
  return createReviewWebhook({ clock, client, url, headers, ...(timeoutMs !== undefined && { timeoutMs }) })
}

/** Reads the current context of a kubeconfig. Throws ProgramError for what is missing or not supported. */
export async function readWebhookConfig(
  file: string,
  readFile: (path: string) => Promise<string>,
): Promise<WebhookTarget> {
  try {
    const config = asEntry(parseYaml(await readFile(file)))
    const context = named(config, 'contexts', 'context', text(config, 'current-context'))
    const cluster = named(config, 'clusters', 'cluster', text(context, 'cluster'))
    const userName = text(context, 'user')
    const user = userName === '' ? {} : named(config, 'users', 'user', userName)
    const load = createLoader(file, readFile)
    const url = text(cluster, 'server')
    if (url === '') throw new Error('the cluster has no "server"')
    return { url, tls: await tlsOf(cluster, user, load), headers: await headersOf(user, load) }
  } catch (cause) {
    throw new ProgramError(`Cannot use the webhook configuration "${file}": ${(cause as Error).message}`, { cause })
  }
}

/** The content of a field: inline as base64, or a file beside the kubeconfig. */
type Load = (entry: Entry, field: string) => Promise<string | undefined>

function createLoader(file: string, readFile: (path: string) => Promise<string>): Load {
  return async (entry, field) => {
    const inline = text(entry, `${field}-data`)
    if (inline !== '') return Buffer.from(inline, 'base64').toString()
    const path = text(entry, field)
    if (path === '') return undefined
    return readFile(isAbsolute(path) ? path : join(dirname(file), path))
  }
}

async function tlsOf(cluster: Entry, user: Entry, load: Load): Promise<ClientTls> {
  const [ca, certificate, key] = await Promise.all([
    load(cluster, 'certificate-authority'),
    load(user, 'client-certificate'),
    load(user, 'client-key'),
  ])
  const serverName = text(cluster, 'tls-server-name')
  return {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(serverName !== '' && { serverName }),
    ...(cluster['insecure-skip-tls-verify'] === true && { insecure: true }),
  }
}

async function headersOf(user: Entry, load: Load): Promise<Readonly<Record<string, string>>> {
  for (const field of ['exec', 'auth-provider']) {
    if (user[field] !== undefined)
      throw new Error(`"${field}" of a user is not supported; use a certificate or a token`)
  }
  const token = text(user, 'token') || (await load(user, 'tokenFile'))?.trim()
  if (token !== undefined && token !== '') return { authorization: `Bearer ${token}` }
  const name = text(user, 'username')
  if (name === '') return {}
  return { authorization: `Basic ${Buffer.from(`${name}:${text(user, 'password')}`).toString('base64')}` }
}

function named(config: Entry, list: string, part: string, name: string): Entry {
  const entries = Array.isArray(config[list]) ? config[list].map(asEntry) : []
  const found = entries.find((entry) => entry['name'] === name)
  if (found === undefined) throw new Error(`there is no ${part} "${name}"`)
  return asEntry(found[part])
}

function asEntry(value: unknown): Entry {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Entry
  throw new Error('it is not a kubeconfig')
}

function text(entry: Entry, field: string): string {
  const value = entry[field]
  return typeof value === 'string' ? value : ''
}
