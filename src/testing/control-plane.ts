/**
 * A control plane for tests: kube-apiserver with objects and files in memory, its own port, and a client with all
 * permissions. Stops when disposed.
 */
import { readFile } from 'node:fs/promises'
import { PassThrough } from 'node:stream'

import { kubeconfigText } from '#client/connection/kubeconfig.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import { type Settings, settingsWith } from '#control-plane/flags/flags.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { startApiServer } from '#control-plane/start.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { createAuthority, type Issued, type IssuePlan } from '#lib/x509/authority.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'

import { startPublishers } from './publishers.ts'

export interface ControlPlaneOptions extends Partial<
  Pick<EnvironmentOptions, 'clock' | 'random' | 'log' | 'network' | 'openStore' | 'onGateRead' | 'changed'>
> {
  /** kube-apiserver's flags by name; they override `SETTINGS`. */
  readonly settings?: Partial<Settings>
  /** Content of files that settings name, by path. Others are read from disk. */
  readonly files?: ReadonlyMap<string, string>
}

export interface ControlPlane extends AsyncDisposable {
  /** `https://127.0.0.1:port`. */
  readonly url: string
  /** The CA of the serving certificate in PEM. */
  readonly ca: string
  /** A bearer token of `system:masters`. */
  readonly token: string
  /** A kubeconfig of the same user, with a client certificate. */
  readonly kubeconfig: string
  readonly running: RunningServer
  /** Sends one request; `body` is sent as JSON unless it is text. */
  request(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ControlPlaneResponse>
  stop(): Promise<void>
}

type JsonMap = Record<string, unknown>

export interface ControlPlaneResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Throws if the response is not JSON. */
  json(): JsonMap
}

const TOKEN = 'admin'

/** Differences from kube-apiserver's defaults. */
const SETTINGS: Partial<Settings> = {
  datastore: 'memory',
  'bind-address': '127.0.0.1',
  'secure-port': 0,
  'tls-cert-file': 'apiserver.crt',
  'tls-private-key-file': 'apiserver.key',
  'client-ca-file': 'ca.crt',
  'token-auth-file': 'tokens.csv',
  'service-account-signing-key-file': 'sa.key',
  'service-account-issuer': ['https://kubernetes.default.svc'],
  'service-cluster-ip-range': '10.0.0.0/24',
  'authorization-mode': ['Node', 'RBAC'],
  'allow-privileged': true,
}

const GRACE_MS = 1000
const MAX_ANSWER_BYTES = 256 << 20

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const pki = createPki()
  const own: ReadonlyMap<string, string> = new Map([
    ['ca.crt', pki.ca],
    ['apiserver.crt', pki.serving.certificatePem],
    ['apiserver.key', pki.serving.keyPem],
    ['sa.key', keyToPem(createKey('ecdsa-p256'))],
    ['tokens.csv', `${TOKEN},admin,admin,"system:masters"\n`],
  ])
  const { clock = realClock, random = createSeededRandom(1), log = errorLog(), network, settings, files } = options
  const { openStore, onGateRead, changed } = options
  const closing = new AsyncDisposableStack()
  const around: EnvironmentOptions = {
    clock,
    random,
    log,
    cwd: process.cwd(),
    stdout: new PassThrough().resume(),
    readFile: async (path) => files?.get(path) ?? own.get(path) ?? (await readFile(path, 'utf8')),
    graceMs: GRACE_MS,
    ...(network !== undefined && { network }),
    ...(openStore !== undefined && { openStore }),
    ...(onGateRead !== undefined && { onGateRead }),
    ...(changed !== undefined && { changed }),
  }
  try {
    const running = await startApiServer(settingsWith({ ...SETTINGS, ...settings }), around, closing)
    const onError = (error: unknown): void =>
      log.error(error, 'Failed to create the default service account and the root CA ConfigMap')
    const publishers = startPublishers(running.server.registry, { rootCa: pki.ca, onError })
    closing.defer(() => publishers.close())
    return controlPlane(running, pki, closing)
  } catch (error) {
    await closing.disposeAsync()
    throw error
  }
}

function controlPlane(running: RunningServer, { ca, admin }: Pki, closing: AsyncDisposableStack): ControlPlane {
  const url = `https://127.0.0.1:${running.port}`
  const client = createHttpClient({ clock: realClock, tls: { ca } })
  closing.defer(() => client.close())
  const stop = (): Promise<void> => closing.disposeAsync()
  const entry = { clientCertificate: admin.certificatePem, clientKey: admin.keyPem, certificateAuthority: ca }
  return {
    url,
    ca,
    token: TOKEN,
    kubeconfig: kubeconfigText({ name: 'testing', server: url, ...entry }),
    running,
    request: (method, path, body, headers) => send(client, url, { method, path, body, headers: headers ?? {} }),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

interface Pki {
  readonly ca: string
  readonly serving: Issued
  readonly admin: Issued
}

/** Valid by the machine's clock, which clients use. */
function createPki(): Pki {
  const authority = createAuthority({ commonName: 'testing' }, { clock: realClock, random: secureRandom })
  const names = { dns: ['localhost'], ips: ['127.0.0.1', '::1'] }
  const issue = (plan: IssuePlan): Issued => authority.issue(plan)
  return {
    ca: authority.certificatePem,
    serving: issue({ commonName: 'kube-apiserver', names, purpose: 'server' }),
    admin: issue({ commonName: 'admin', organizations: ['system:masters'], purpose: 'client' }),
  }
}

/** Logs errors only, except during shutdown. */
export function errorLog(isOver: () => boolean = () => false): EnvironmentOptions['log'] {
  const nowhere = { write: (_text: string, done: () => void) => done() }
  const errorStream = {
    write: (text: string, done: () => void) => (isOver() ? done() : void process.stderr.write(text, done)),
  }
  return createLog({ clock: realClock, stream: nowhere, errorStream }).logger
}

interface SentRequest {
  readonly method: string
  readonly path: string
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

async function send(
  client: HttpClient,
  url: string,
  { method, path, body, headers }: SentRequest,
): Promise<ControlPlaneResponse> {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const answer = await client.request({
    method,
    url: url + path,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(text === undefined ? {} : { body: text }),
  })
  const received = await answer.text(MAX_ANSWER_BYTES)
  return {
    status: answer.status,
    headers: new Headers(Object.entries(answer.headers).flatMap(([name, value]) => pairsOf(name, value))),
    text: received,
    json: () => JSON.parse(received) as JsonMap,
  }
}

/** Skips HTTP/2 pseudo headers. */
function pairsOf(name: string, value: string | string[] | undefined): [string, string][] {
  return name.startsWith(':') ? [] : [value ?? []].flat().map((one) => [name, one])
}
