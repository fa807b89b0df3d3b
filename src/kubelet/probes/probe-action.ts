/**
 * Runs a probe: a command in the container, an HTTP request, a TCP connection or a gRPC health check. It starts no
 * process on the node.
 */
import type { HTTPGetAction, Probe } from '#apis/core/v1.ts'
import { callText } from '#cri/call-text.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import { durationOfMs } from '#lib/go/duration.ts'
import { goQuote } from '#lib/go/text.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import { defineMethod } from '#lib/grpc/method.ts'
import { hasStatus } from '#lib/grpc/status.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { dial } from '#lib/http/dial.ts'
import { HttpError } from '#lib/http/http-error.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { defineMessage } from '#lib/protobuf/message.ts'
import type { Random } from '#lib/random.ts'
import { versionInfo } from '#model/version.ts'

export type ProbeAnswer =
  /** `warning` is recorded as an event, although the probe has passed. */
  | { readonly isFine: true; readonly warning?: string }
  | { readonly isFine: false; readonly output: string }
  /** The probe could not run. */
  | { readonly isFine: undefined; readonly error: string }

export interface ProbeTarget {
  readonly containerId: string
  /** The pod's address. */
  readonly address: string
  /** Ports by name. */
  readonly ports: ReadonlyMap<string, number>
}

const FINE: ProbeAnswer = { isFine: true }
const failure = (output: string): ProbeAnswer => ({ isFine: false, output: output.slice(0, MAX_OUTPUT) })
/** Maximum length of the recorded output. */
const MAX_OUTPUT = 10 * 1024
/** Go's client fails when the tenth response is a redirect as well. */
const MAX_REQUESTS = 10
/** The statuses that Go's client follows to the address in `Location`. */
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

interface ProbeDependencies {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly random: Random
}

export type RunProbe = (probe: Probe, target: ProbeTarget) => Promise<ProbeAnswer>

export function createProbeAction({ runtime, clock, random }: ProbeDependencies): RunProbe {
  return async (probe, target) => {
    const timeoutMs = Math.max(1, probe.timeoutSeconds ?? 1) * 1000
    const { exec, httpGet, tcpSocket, grpc } = probe
    if (exec !== undefined) return probeCommand(runtime, target, exec.command ?? [], timeoutMs)
    const port = portOf((httpGet ?? tcpSocket ?? grpc)?.port ?? 0, target)
    if (port === undefined) return { isFine: undefined, error: 'could not find the port of the probe' }
    if (httpGet !== undefined) return probeHttp(clock, urlOf(httpGet, target, port), headersOf(httpGet), timeoutMs)
    if (tcpSocket !== undefined) return probeTcp(clock, tcpSocket.host ?? target.address, port, timeoutMs)
    const { address: host } = target
    const client = createGrpcClient({ clock, random, targets: [{ host, port }] })
    const service = grpc?.service ?? ''
    return probeGrpc(client, `${bracketed(host)}:${port}`, service, timeoutMs).finally(() => client.close())
  }
}

function urlOf({ host, scheme = 'HTTP', path = '/' }: HTTPGetAction, { address }: ProbeTarget, port: number): URL {
  const url = new URL(`${scheme.toLowerCase()}://${bracketed(host ?? address)}:${port}`)
  const [before = '/', query = ''] = path.split('?', 2)
  url.pathname = before
  url.search = query
  return url
}

function headersOf({ httpHeaders = [] }: HTTPGetAction): Record<string, string> {
  return Object.fromEntries(httpHeaders.map(({ name, value }) => [name.toLowerCase(), value]))
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

function portOf(port: number | string, { ports }: ProbeTarget): number | undefined {
  return typeof port === 'number' ? port : (ports.get(port) ?? (/^\d+$/.test(port) ? Number(port) : undefined))
}

async function probeCommand(
  runtime: Runtime,
  { containerId }: ProbeTarget,
  cmd: readonly string[],
  timeoutMs: number,
): Promise<ProbeAnswer> {
  try {
    const { stdout, stderr, exitCode } = await runtime.execSync({ containerId, cmd, timeout: timeoutMs / 1000 })
    return exitCode === 0 ? FINE : failure(stdout.toString() + stderr.toString())
  } catch (error) {
    if (hasStatus(error, 'deadlineExceeded')) {
      return failure(`command timed out: ${goQuote(cmd.join(' '))} timed out after ${durationOfMs(timeoutMs)}`)
    }
    return { isFine: undefined, error: callText(error) }
  }
}

/** Requests a URL and follows redirects within its host. A redirect to another host passes the probe with a warning. */
async function probeHttp(
  clock: Clock,
  first: URL,
  given: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<ProbeAnswer> {
  const client = createHttpClient({ clock, tls: { insecure: true }, http1Only: true, connectTimeoutMs: timeoutMs })
  const { major, minor } = versionInfo()
  const headers = { 'user-agent': `kube-probe/${major}.${minor}`, accept: '*/*', connection: 'close', ...given }
  const untilMs = clock.elapsed() + timeoutMs
  let url = first
  try {
    for (let requests = 0; requests < MAX_REQUESTS; requests++) {
      const response = await client.request({ url, headers, timeoutMs: Math.max(1, untilMs - clock.elapsed()) })
      const next = redirectOf(url, response)
      if (next === undefined || next.hostname !== first.hostname) return await resultOf(response)
      response.discard()
      url = next
    }
    return failure(`Get ${goQuote(url.href)}: stopped after ${MAX_REQUESTS} redirects`)
  } catch (error) {
    return failure(`Get ${goQuote(url.href)}: ${httpErrorText(error, url)}`)
  } finally {
    client.close()
  }
}

function redirectOf(url: URL, { status, headers }: HttpResponse): URL | undefined {
  const { location } = headers
  return REDIRECT_STATUSES.has(status) && location !== undefined ? new URL(location, url) : undefined
}

async function resultOf(response: HttpResponse): Promise<ProbeAnswer> {
  const { status } = response
  if (status >= 300 && status < 400) {
    return { isFine: true, warning: `Probe terminated redirects, Response body: ${await startOfBody(response)}` }
  }
  response.discard()
  return status >= 200 && status < 300 ? FINE : failure(`HTTP probe failed with statuscode: ${status}`)
}

/** Reads as much of a body as an event may quote. */
async function startOfBody({ body }: HttpResponse): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of body) {
    pieces.push(piece)
    length += piece.length
    if (length >= MAX_OUTPUT) break
  }
  return Buffer.concat(pieces).subarray(0, MAX_OUTPUT).toString()
}

function httpErrorText(error: unknown, { hostname, port, protocol }: URL): string {
  if (!(error instanceof HttpError)) return String(error)
  const where = `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`
  if (error.code === 'connect') return `dial tcp ${where}: ${connectText(error)}`
  if (error.code !== 'timeout') return error.message
  return 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
}

function connectText({ cause, message }: HttpError): string {
  const { code } = (cause ?? {}) as { code?: string }
  if (code === 'ECONNREFUSED') return 'connect: connection refused'
  if (code === 'EHOSTUNREACH') return 'connect: no route to host'
  return code === undefined ? message : `connect: ${code}`
}

async function probeTcp(clock: Clock, host: string, port: number, timeoutMs: number): Promise<ProbeAnswer> {
  try {
    const socket = await dial({ isSecure: false, host, port }, { clock, tls: {}, timeoutMs, alpn: [] })
    socket.destroy()
    return FINE
  } catch (error) {
    const why = error instanceof HttpError && error.code === 'connect' ? connectText(error) : 'i/o timeout'
    return failure(`dial tcp ${bracketed(host)}:${port}: ${why}`)
  }
}

const HEALTH_STATES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN']
const CHECK = defineMethod(
  '/grpc.health.v1.Health/Check',
  defineMessage({ service: [1, 'string'] }),
  defineMessage({ status: [1, 'enum'] }),
)

async function probeGrpc(
  client: GrpcClient,
  address: string,
  service: string,
  timeoutMs: number,
): Promise<ProbeAnswer> {
  const within = durationOfMs(timeoutMs)
  try {
    await client.connect({ timeoutMs })
    const { status } = await client.unary(CHECK, { service }, { timeoutMs })
    const state = HEALTH_STATES[status] ?? String(status)
    return state === 'SERVING' ? FINE : failure(`service unhealthy (responded with ${goQuote(state)})`)
  } catch (error) {
    return failure(grpcErrorText(error, address, within))
  }
}

function grpcErrorText(error: unknown, address: string, within: string): string {
  if (hasStatus(error, 'unimplemented')) {
    const protocol = 'this server does not implement the grpc health protocol (grpc.health.v1.Health)'
    return `error: ${protocol}: ${error instanceof Error ? error.message : ''}`
  }
  if (hasStatus(error, 'deadlineExceeded') || hasStatus(error, 'unavailable')) {
    return `timeout: failed to connect service ${goQuote(address)} within ${within}: context deadline exceeded`
  }
  return `error: health rpc probe failed: ${callText(error)}`
}
