/** The connection to the server: HTTPS with the authority that matches the checksum, and a WebSocket for the tunnel. */
import { createHash } from 'node:crypto'

import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import { connectWebSocket, WebSocketError } from '#lib/http/websocket.ts'
import { ProgramError } from '#lib/program.ts'
import { Tunnel, TUNNEL_PROTOCOL, type TunnelOptions } from '#lib/tunnel/tunnel.ts'

import type { AgentSettings } from './parameters.ts'
import { type AgentServer, planAnswer, type TunnelEnd } from './server.ts'

const ASK_MS = 30_000
const MAX_PLAN_BYTES = 16 << 20
const MAX_CA_BYTES = 1 << 20
/** A silent peer counts as lost after some of these, for example after a virtual switch was created. */
const PING_MS = 10_000
const SILENCE_MS = 25_000

export interface LinkOptions extends TunnelOptions {
  readonly clock: Clock
  readonly settings: AgentSettings
  /** PEM; undefined: the public authorities. */
  readonly ca: string | undefined
  /** Undefined: for a server that knows the node by its token alone. */
  readonly credential?: string
  /** Called for each connection, because addresses change. */
  readonly parameters: () => Promise<object>
}

/**
 * Downloads the certificate authority of the server and verifies it with the checksum. Undefined without a checksum.
 * Throws ProgramError.
 */
export async function fetchServerCa(
  clock: Clock,
  { server, caChecksum }: Pick<AgentSettings, 'server' | 'caChecksum'>,
): Promise<string | undefined> {
  if (caChecksum === '') return undefined
  const http = createHttpClient({ clock, tls: { insecure: true } })
  try {
    const url = `${server}/v3/settings/cacerts`
    const answer = await http.request({ url, timeoutMs: ASK_MS })
    const body = await answer.text(MAX_CA_BYTES)
    const value = answer.status === 200 ? (JSON.parse(body) as { readonly value?: unknown }).value : undefined
    if (typeof value !== 'string' || value === '') throw new ProgramError(`${url} provides no certificate authority`)
    if (!isCaOf(value, caChecksum)) throw new ProgramError(`The authority that ${url} provides has another checksum`)
    return value
  } catch (error) {
    if (error instanceof ProgramError) throw error
    throw new ProgramError(`Cannot ask ${server} for its authority: ${(error as Error).message}`, { cause: error })
  } finally {
    http.close()
  }
}

/** Users compute the checksum with the line end that tools add. */
export function isCaOf(pem: string, checksum: string): boolean {
  return caChecksumOf(pem) === checksum.toLowerCase()
}

/** For commands that start an agent. */
export function caChecksumOf(pem: string): string {
  return createHash('sha256').update(`${pem}\n`).digest('hex')
}

/** The caller closes it. */
export function createServerLink(options: LinkOptions): AgentServer & { close(): void } {
  const { clock, ca } = options
  const tls: ClientTls = ca === undefined ? {} : { ca }
  const http = createHttpClient({ clock, tls })
  return {
    tunnel: (mode, opened, signal) => openTunnel({ ...options, tls }, { mode, opened, signal }),
    plan: (signal) => askForPlan(http, options, signal),
    close: () => http.close(),
  }
}

async function headersOf({
  settings: { token },
  credential,
  parameters,
}: Pick<LinkOptions, 'settings' | 'credential' | 'parameters'>): Promise<Record<string, string>> {
  const params = Buffer.from(JSON.stringify(await parameters())).toString('base64')
  return {
    'x-api-tunnel-token': token,
    'x-api-tunnel-params': params,
    ...(credential !== undefined && { 'x-api-tunnel-credential': credential }),
  }
}

async function askForPlan(
  http: HttpClient,
  options: Pick<LinkOptions, 'settings' | 'credential' | 'parameters'>,
  signal: AbortSignal,
): ReturnType<AgentServer['plan']> {
  const { settings } = options
  try {
    const headers = await headersOf(options)
    const url = `${settings.server}/v3/connect/config`
    const answer = await http.request({ url, headers, timeoutMs: ASK_MS, signal })
    return planAnswer(answer.status, await answer.text(MAX_PLAN_BYTES), settings.nodeName)
  } catch (error) {
    return { kind: 'failed', message: (error as Error).message }
  }
}

interface TunnelAttempt {
  readonly mode: 'connect' | 'register'
  readonly opened: () => void
  readonly signal: AbortSignal
}

async function openTunnel(
  { clock, settings, credential, parameters, tls, ...options }: LinkOptions & { readonly tls: ClientTls },
  { mode, opened, signal }: TunnelAttempt,
): Promise<TunnelEnd> {
  const base = settings.server.replace(/^http/, 'ws')
  const url = `${base}/v3/connect${mode === 'register' ? '/register' : ''}`
  try {
    const headers = await headersOf({ settings, parameters, ...(credential !== undefined && { credential }) })
    const connection = await connectWebSocket({
      clock,
      url,
      headers,
      tls,
      signal,
      protocols: [TUNNEL_PROTOCOL],
      // Older servers choose none.
      isProtocolOptional: true,
      pingIntervalMs: PING_MS,
      silenceLimitMs: SILENCE_MS,
    })
    opened()
    const release = onAbort(signal, () => void connection.close())
    await new Tunnel(connection, { ...options, clock, side: 'agent' }).serve().finally(release)
    return { kind: 'ended' }
  } catch (error) {
    const { message } = error as Error
    const isAnswer = error instanceof WebSocketError && error.status > 0
    return { kind: isAnswer ? 'refused' : 'broken', message }
  }
}
