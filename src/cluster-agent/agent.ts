/**
 * The agent of a managed cluster. It opens a tunnel to the management server and serves the requests that arrive on
 * its streams. It reconnects after every lost connection.
 */
import { onAbort } from '#lib/abort.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { connectWebSocket, type WebSocketConnection, WebSocketError } from '#lib/http/websocket.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { REQUEST_PROTOCOL } from '#lib/tunnel/request-head.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'

import type { ApiProxy } from './api-proxy.ts'

/** The address of the API server in requests to open a stream. */
export const API_SERVER_ADDRESS = 'kube-apiserver'

export interface ClusterAgentOptions {
  /** `https://manager.example`. */
  readonly server: string
  /** PEM; undefined: the public authorities. */
  readonly ca: string | undefined
  readonly registrationToken: string
  readonly credential: string
  /** Sent with each connection: the uid of kube-system and versions. */
  readonly describe: () => Promise<ClusterDescription>
  readonly proxy: ApiProxy
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface ClusterDescription {
  /** The uid of the namespace kube-system. */
  readonly uid: string
  readonly agentVersion: string
}

const PING_MS = 10_000
const SILENCE_MS = 25_000
const MIN_WAIT_MS = 1000
const MAX_WAIT_MS = 8000

/** Runs until the signal is aborted. */
export async function runClusterAgent(options: ClusterAgentOptions, signal: AbortSignal): Promise<void> {
  const { clock, random, log } = options
  let mode: 'connect' | 'register' = 'connect'
  let failures = 0
  while (!signal.aborted) {
    const end = await connectOnce(options, mode, signal)
    if (signal.aborted) return
    // The server does not know the credential: register, unless that was just refused.
    const mustRegister: boolean = end.status === 401 && mode === 'connect'
    mode = mustRegister ? 'register' : 'connect'
    if (mustRegister) continue
    failures = end.wasConnected ? 0 : failures + 1
    const what = end.wasConnected
      ? 'Lost the connection to the management server'
      : 'Failed to connect to the management server'
    log.error(end.error, what, { server: options.server })
    const limitMs = Math.min(MAX_WAIT_MS, MIN_WAIT_MS * 2 ** Math.min(failures, 10))
    await sleep(clock, MIN_WAIT_MS + random.float() * (limitMs - MIN_WAIT_MS), signal).catch(() => undefined)
  }
}

interface ConnectionEnd {
  readonly wasConnected: boolean
  /** The status with which the server refused the connection; 0 for other ends. */
  readonly status: number
  readonly error: unknown
}

/** Serves one connection until it ends. Never rejects. */
async function connectOnce(
  options: ClusterAgentOptions,
  mode: 'connect' | 'register',
  signal: AbortSignal,
): Promise<ConnectionEnd> {
  let connection: WebSocketConnection
  try {
    connection = await open(options, mode, signal)
  } catch (error) {
    return { wasConnected: false, status: error instanceof WebSocketError ? error.status : 0, error }
  }
  const { clock, log, proxy, server } = options
  log.info('Connected to the management server', { server, registered: mode === 'register' })
  const tunnel = new Tunnel(connection, {
    clock,
    side: 'agent',
    accept(protocol, address) {
      const isForApi = protocol === REQUEST_PROTOCOL && address === API_SERVER_ADDRESS
      return isForApi ? (stream) => proxy.accept(stream) : undefined
    },
  })
  const release = onAbort(signal, () => void tunnel.close())
  try {
    await tunnel.serve()
    return { wasConnected: true, status: 0, error: new Error('the server closed the connection') }
  } catch (error) {
    return { wasConnected: true, status: 0, error }
  } finally {
    release()
  }
}

async function open(
  { server, ca, registrationToken, credential, describe, clock }: ClusterAgentOptions,
  mode: 'connect' | 'register',
  signal: AbortSignal,
): Promise<WebSocketConnection> {
  const parameters = { ...(await describe()), ...(mode === 'register' && { credential }) }
  return connectWebSocket({
    clock,
    url: `${server.replace(/^http/, 'ws').replace(/\/$/, '')}/v3/connect${mode === 'register' ? '/register' : ''}`,
    protocols: [TUNNEL_PROTOCOL],
    headers: {
      'x-api-tunnel-token': mode === 'register' ? registrationToken : credential,
      'x-api-tunnel-params': Buffer.from(JSON.stringify(parameters)).toString('base64'),
    },
    tls: ca === undefined ? {} : { ca },
    signal,
    pingIntervalMs: PING_MS,
    silenceLimitMs: SILENCE_MS,
  })
}
