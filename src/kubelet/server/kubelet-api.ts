/** Serves the kubelet API to the API server and metrics collectors. Every request is authorized first. */
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { METRICS_CONTENT_TYPE } from '#lib/metrics/metrics.ts'
import { statusOf } from '#meta/status.ts'
import type { ZPages } from '#model/zpages.ts'

import type { ContainerOfPod, PodOfNode } from '../pod/pod-of-node.ts'
import type { Access } from './access.ts'
import { type Answer, jsonAnswer, textAnswer } from './answer.ts'
import { checkpoint } from './checkpoint.ts'
import { answerLog } from './container-logs.ts'
import { answerLogDirectory } from './node-logs.ts'
import { requestTarget } from './request-target.ts'
import { joinRuntime, NO_UPGRADE, openAttach, openExec, openPorts, streamFault } from './streams.ts'

export interface KubeletApiOptions {
  readonly clock: Clock
  /** Undefined: every caller may read, and nothing else is served. */
  readonly access: Access | undefined
  /** Enables the endpoints that access containers. Default: true. */
  readonly hasDebugging?: boolean
  readonly runtime: Runtime
  /** Client for the runtime's streams. */
  readonly http: HttpClient
  readonly pods: () => Iterable<PodOfNode>
  readonly find: (namespace: string, name: string, uid?: string) => PodOfNode | undefined
  /** True if the sync loop is healthy. */
  readonly isInSync: () => boolean
  /** Served on `/configz`. */
  readonly configuration: object
  readonly summary: () => Promise<object>
  readonly resourceMetrics: () => Promise<string>
  readonly cadvisorMetrics: () => Promise<string>
  readonly metrics: () => Promise<string>
  readonly probeMetrics: () => string
  /** Serves `/statusz` and `/flagz`. Default: disabled. */
  readonly zpages?: ZPages
  /** The directory served on `/logs/`. Default: the path is disabled. */
  readonly logDirectory?: string
  /** Directory of container checkpoints. */
  readonly checkpointsDir: string
  /** Timeout of runtime calls. Default: two minutes. */
  readonly runtimeTimeoutMs?: number
}

interface KubeletRequest extends KubeletApiOptions {
  readonly exchange: Exchange
  readonly parts: readonly string[]
  readonly isFolder: boolean
  readonly query: URLSearchParams
}

/** Undefined: the handler has answered or taken over the connection. */
type RouteHandler = (request: KubeletRequest) => Answer | undefined | Promise<Answer | undefined>

/** Paths served without authentication on the read-only port. */
const READ_ONLY = new Set(['healthz', 'pods', 'stats', 'metrics'])
const DEBUGGING = new Set(['run', 'exec', 'attach', 'portForward', 'containerLogs', 'runningpods', 'logs', 'debug'])
const DISABLED: Answer = textAnswer(405, 'Debug endpoints are disabled.\n')

const METRICS: HeaderList = ['Content-Type', METRICS_CONTENT_TYPE]
const NOT_FOUND: Answer = textAnswer(404, '404 page not found\n')
const BAD_REQUEST: Answer = textAnswer(400, '400 Bad Request')

/** The handler of a first path segment. */
interface Route {
  /** Other methods are answered with 405. Default: every method. */
  readonly methods?: readonly string[]
  /** Allowed number of further segments; others are answered with 404. Default: none. */
  readonly below?: readonly [min: number, max: number]
  readonly handle: RouteHandler
}

const GET = ['GET']
/** WebSockets begin with GET, SPDY with POST. */
const STREAMS = ['GET', 'POST']
const POST = ['POST']
/** `<namespace>/<pod>[/<uid>]/<container>`. */
const CONTAINER = [3, 4] as const

const ROUTES: Readonly<Record<string, Route>> = {
  healthz: { below: [0, 1], handle: healthz },
  pods: {
    methods: GET,
    handle: ({ pods }) => podList(Array.from(pods(), ({ pod }) => pod)),
  },
  runningpods: { methods: GET, handle: ({ pods }) => podList(Array.from(pods()).flatMap(runningOf)) },
  configz: { handle: ({ configuration }) => jsonAnswer({ kubeletconfig: configuration }) },
  stats: {
    methods: GET,
    below: [0, 1],
    handle: async ({ parts, summary }) => (parts[1] === 'summary' ? jsonAnswer(await summary()) : NOT_FOUND),
  },
  metrics: { below: [0, 1], handle: metricsPage },
  statusz: { handle: zpage },
  flagz: { handle: zpage },
  logs: { methods: GET, below: [0, Infinity], handle: logDirectory },
  containerLogs: {
    methods: GET,
    below: [3, 3],
    handle: ({ exchange, clock, query, parts: [, namespace = '', name = '', container = ''], find }) =>
      answerLog({ exchange, clock, query, name, container, find: () => find(namespace, name) }),
  },
  exec: { methods: STREAMS, below: CONTAINER, handle: (request) => stream(request, openExec) },
  attach: { methods: STREAMS, below: CONTAINER, handle: (request) => stream(request, openAttach) },
  portForward: { methods: STREAMS, below: [2, 3], handle: forward },
  run: { methods: POST, below: CONTAINER, handle: run },
  checkpoint: { methods: POST, below: [3, 3], handle: ({ parts, ...request }) => checkpoint(parts.slice(1), request) },
}

export function createKubeletApi(options: KubeletApiOptions): (exchange: Exchange) => Promise<void> {
  const { access, hasDebugging = true } = options
  return async (exchange) => {
    const target = requestTarget(exchange.path)
    if (target === undefined) return send(exchange, BAD_REQUEST)
    const { segments: parts, isFolder, query } = target
    const first = parts[0] ?? ''
    const refusal = await access?.authorize(exchange, first)
    if (refusal !== undefined) return send(exchange, textAnswer(refusal.status, refusal.text))
    if (!hasDebugging && DEBUGGING.has(first)) return send(exchange, DISABLED)
    const isServed = Object.hasOwn(ROUTES, first) && (access !== undefined || READ_ONLY.has(first))
    const route = isServed ? ROUTES[first] : undefined
    const answer = await answerOf(route, { ...options, exchange, parts, isFolder, query })
    if (answer !== undefined) send(exchange, answer)
  }
}

function answerOf(route: Route | undefined, request: KubeletRequest): ReturnType<RouteHandler> {
  if (route === undefined) return NOT_FOUND
  const { methods, below: [min, max] = [0, 0], handle } = route
  const below = request.parts.length - 1
  if (below < min || below > max) return NOT_FOUND
  return methods === undefined || methods.includes(request.exchange.method) ? handle(request) : wrongMethod(methods)
}

function wrongMethod(methods: readonly string[]): Answer {
  const { headers, ...answer } = textAnswer(405, '405: Method Not Allowed')
  return { ...answer, headers: [...headers, 'Allow', methods.join(', ')] }
}

function podList(items: readonly object[]): Answer {
  return jsonAnswer({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items })
}

function zpage({ exchange, parts, zpages, hasDebugging = true }: KubeletRequest): Answer {
  try {
    const page = hasDebugging ? zpages?.(`/${parts[0]}`, exchange.headers.accept ?? '') : undefined
    if (page === undefined) return NOT_FOUND
    const { status, contentType, headers = {}, body } = page
    return {
      status,
      headers: ['Content-Type', contentType, ...Object.entries(headers).flat()],
      body: Buffer.from(body),
    }
  } catch (error) {
    const status = statusOf(error)
    if (status === undefined) throw error
    return { ...jsonAnswer(status), status: status.code ?? 500 }
  }
}

const LOGS_DISABLED: Answer = textAnswer(405, 'logs endpoint is disabled.\n')

function logDirectory({
  exchange,
  parts,
  isFolder,
  logDirectory: directory,
}: KubeletRequest): ReturnType<RouteHandler> {
  if (directory === undefined) return LOGS_DISABLED
  return answerLogDirectory({ exchange, directory, segments: parts.slice(1), isFolder })
}

async function metricsPage(request: KubeletRequest): Promise<Answer> {
  const { parts, metrics, resourceMetrics, cadvisorMetrics, probeMetrics } = request
  const pages = new Map([
    ['', metrics],
    ['cadvisor', cadvisorMetrics],
    ['probes', async () => probeMetrics()],
    ['resource', resourceMetrics],
  ])
  const read = pages.get(parts[1] ?? '')
  return read === undefined ? NOT_FOUND : { status: 200, headers: METRICS, body: Buffer.from(await read()) }
}

function send(exchange: Exchange, { status, headers, body }: Answer): void {
  exchange.respond(status, headers, body)
}

/** `/healthz/<check>` runs one check. */
function healthz({ parts, query, isInSync }: KubeletRequest): Answer {
  const all = { ping: true, log: true, syncloop: isInSync() }
  const checks = Object.entries(all).filter(([name]) => parts[1] === undefined || parts[1] === name)
  if (checks.length === 0) return NOT_FOUND
  const isWell = checks.every(([, isGood]) => isGood)
  if (isWell && !query.has('verbose')) return textAnswer(200, 'ok')
  const lines = checks.map(([name, isGood]) => (isGood ? `[+]${name} ok` : `[-]${name} failed: reason withheld`))
  return textAnswer(isWell ? 200 : 500, `${lines.join('\n')}\nhealthz check ${isWell ? 'passed' : 'failed'}\n`)
}

function runningOf({ pod: { metadata }, containers }: PodOfNode): object[] {
  const running = Array.from(containers.values()).filter(({ current }) => current !== undefined)
  if (running.length === 0) return []
  const { name, namespace, uid } = metadata
  const spec = running.map(({ record }) => ({ name: record.spec.name, image: record.imageId, resources: {} }))
  return [{ metadata: { name, namespace, uid, creationTimestamp: null }, spec: { containers: spec }, status: {} }]
}

/** `/exec/<namespace>/<pod>[/<uid>]/<container>`. */
function containerOf({ parts, find }: KubeletRequest): ContainerOfPod | Answer {
  const [, namespace = '', name = ''] = parts
  const pod = find(namespace, name, parts.length > 4 ? parts[3] : undefined)
  if (pod === undefined) return textAnswer(404, 'pod does not exist')
  const container = parts.at(-1) ?? ''
  return pod.containers.get(container) ?? textAnswer(500, `container not found ("${container}")`)
}

async function stream(request: KubeletRequest, open: typeof openExec): Promise<Answer | undefined> {
  const { exchange, query } = request
  const fault = streamFault(exchange, query)
  if (fault !== undefined) return fault
  const found = containerOf(request)
  if ('status' in found) return found
  const id = found.current?.containerId
  if (id === undefined) return textAnswer(500, `container not found ("${found.record.spec.name}")`)
  return joined(request, () => open(request, id, query))
}

function forward(request: KubeletRequest): Answer | Promise<Answer | undefined> {
  const [, namespace = '', name = '', uid] = request.parts
  if (request.exchange.upgradeProtocol === undefined) return NO_UPGRADE
  const pod = request.find(namespace, name, uid)
  if (pod === undefined) return textAnswer(404, 'pod does not exist')
  const { sandboxId } = pod
  if (sandboxId === undefined) return textAnswer(500, `pod not found ("${pod.pod.metadata.uid}")`)
  return joined(request, () => openPorts(request, sandboxId, request.query))
}

async function joined(
  request: KubeletRequest,
  open: () => Promise<{ readonly url: string }>,
): Promise<Answer | undefined> {
  try {
    const { url } = await open()
    return await joinRuntime(request.exchange, request, url)
  } catch (error) {
    return textAnswer(500, (error as Error).message)
  }
}

/** Timeout of commands without streams. */
const RUN_SECONDS = 120

async function run(request: KubeletRequest): Promise<Answer> {
  const found = containerOf(request)
  if ('status' in found) return found
  const id = found.current?.containerId
  if (id === undefined) return textAnswer(500, `container not found ("${found.record.spec.name}")`)
  const cmd = (request.query.get('cmd') ?? '').split(' ')
  try {
    const { stdout, stderr } = await request.runtime.execSync({ containerId: id, cmd, timeout: RUN_SECONDS })
    return { ...jsonAnswer(''), body: Buffer.concat([stdout, stderr]) }
  } catch (error) {
    return textAnswer(500, (error as Error).message)
  }
}
