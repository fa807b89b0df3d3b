/** Starts our kube-apiserver from these sources in the same way as the reference, and sends requests to either. */
import { writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'

import { kubeconfigText } from '#client/connection/kubeconfig.ts'

import { type AdminTls, end, launch, prepareServer, untilReady } from './kube-apiserver.ts'

export const HYPERKUBE: string = join(import.meta.dirname, '..', '..', 'bin', 'hyperkube')

export interface Server {
  readonly port: number
  readonly tls: AdminTls
  stop(): Promise<void>
}

/** Keeps its files and its log in `folder`, and its objects in memory unless `flags`, which are added, name a store. */
export async function startOurs(folder: string, flags: readonly string[] = []): Promise<Server> {
  const prepared = await prepareServer(folder)
  const log = join(folder, 'hyperkube.log')
  const hasStore = flags.some((flag) => flag.startsWith('--etcd-servers='))
  const store = hasStore ? [] : ['--datastore=memory']
  const child = await launch(HYPERKUBE, ['kube-apiserver', ...prepared.flags, ...flags, ...store], log)
  try {
    await untilReady(prepared, child)
  } catch (cause) {
    throw new Error(`Our kube-apiserver did not start; its log is ${log}`, { cause })
  }
  return { ...prepared, stop: () => end(child, 'SIGTERM') }
}

/** Writes a kubeconfig for its administrator. */
export async function writeKubeconfig(file: string, { port, tls }: Pick<Server, 'port' | 'tls'>): Promise<string> {
  const { ca, cert, key } = tls
  const server = `https://127.0.0.1:${port}`
  const entry = { name: 'test', server, certificateAuthority: ca, clientCertificate: cert, clientKey: key }
  await writeFile(file, kubeconfigText(entry), { mode: 0o600 })
  return file
}

export interface Ask {
  readonly method?: string
  readonly path: string
  readonly accept?: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** The Content-Type of the body; the default for a patch is merge patch. */
  readonly type?: string
}

export interface Response {
  readonly status: number
  readonly body: unknown
  readonly warnings: readonly string[]
}

/** As the administrator. The answer is parsed when it is JSON. */
export function ask({ port, tls }: Pick<Server, 'port' | 'tls'>, what: Ask): Promise<Response> {
  const { method = 'GET', path, accept = 'application/json', body } = what
  const { type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' } = what
  const sent = body === undefined ? undefined : JSON.stringify(body)
  // Node would send the body of a DELETE without saying how long it is.
  const about = sent === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(sent) }
  const headers = { accept, ...about }
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const asking = request({ host: '127.0.0.1', port, method, path, headers, ...tls }, (answer) => {
    const chunks: Buffer[] = []
    answer.on('data', (chunk: Buffer) => chunks.push(chunk))
    answer.on('error', reject)
    answer.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      // Upstream does not say so of all its documents.
      const isJson = text.startsWith('{')
      const warnings = answer.headersDistinct['warning'] ?? []
      resolve({ status: answer.statusCode ?? 0, body: isJson ? (JSON.parse(text) as unknown) : text, warnings })
    })
  })
  asking.on('error', reject)
  asking.end(sent)
  return promise
}
