/**
 * The HTTP API of kubelets whose containers do not run: logs, stats and metrics are made up; whatever would need a
 * process is refused. One handler for all nodes of the process: which is meant says the address that was asked.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { METRICS_CONTENT_TYPE } from '#lib/metrics.ts'
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'

import type { Run } from '../container-runs.ts'
import { isPrevious, logWishOf, type LogWish, whyNoLog } from '../log-wish.ts'
import { resourceMetrics } from '../metrics/resource.ts'
import { type MeasuredNode, statsSummary } from '../node-stats.ts'
import type { ContainerLife } from './container-life.ts'
import { linesOf, logText } from './container-log.ts'
import type { NodeLife } from './node-life.ts'
import { plainMetrics } from './plain-metrics.ts'
import type { PodLife } from './pod-life.ts'
import { measuredNode } from './usage.ts'

const TEXT: HeaderList = ['Content-Type', 'text/plain; charset=utf-8']
const JSON_TYPE: HeaderList = ['Content-Type', 'application/json']
const METRICS: HeaderList = ['Content-Type', METRICS_CONTENT_TYPE]

export interface KubeletApiOptions {
  readonly clock: Clock
  /** By its address. */
  readonly nodeAt: (address: string) => NodeLife | undefined
}

interface Request {
  readonly exchange: Exchange
  readonly node: NodeLife
  readonly parts: readonly string[]
  readonly query: URLSearchParams
  readonly clock: Clock
}

type Handler = (request: Request) => void | Promise<void>

const HANDLERS: Readonly<Record<string, Handler>> = {
  healthz: ({ exchange }) => exchange.respond(200, TEXT, 'ok'),
  pods: ({ exchange, node }) => {
    const items = Array.from(node.pods.values(), ({ pod, written }) => ({ ...pod, status: written }))
    exchange.respond(
      200,
      JSON_TYPE,
      Buffer.from(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items })),
    )
  },
  stats: ({ exchange, node, clock }) =>
    exchange.respond(200, JSON_TYPE, Buffer.from(JSON.stringify(statsSummary(measuredOf(node, clock), clock.now())))),
  metrics: ({ exchange, node, parts, clock }) =>
    parts[1] === 'resource'
      ? exchange.respond(200, METRICS, Buffer.from(resourceMetrics(measuredOf(node, clock), clock.now())))
      : exchange.respond(200, METRICS, plainMetrics(node.name, runningPods(node))),
  containerLogs: answerLog,
  exec: refuse,
  attach: refuse,
  run: refuse,
  portForward: refuse,
  checkpoint: refuse,
}

export function createKubeletApi({ clock, nodeAt }: KubeletApiOptions): (exchange: Exchange) => Promise<void> {
  return async (exchange) => {
    const node = nodeAt(exchange.authority.replace(/:\d+$/, ''))
    const { pathname, searchParams } = new URL(exchange.path, 'https://kubelet')
    const parts = pathname.split('/').slice(1).map(decodeURIComponent)
    const handler = Object.hasOwn(HANDLERS, parts[0] ?? '') ? HANDLERS[parts[0] ?? ''] : undefined
    if (node === undefined || handler === undefined) return exchange.respond(404, TEXT, '404 page not found\n')
    if (node.silence !== undefined) return exchange.respond(503, TEXT, `simulated node ${node.name} does not answer`)
    await handler({ exchange, node, parts, query: searchParams, clock })
  }
}

function measuredOf({ name, pods, startedMs, capacity }: NodeLife, clock: Clock): MeasuredNode {
  const capacityBytes = quantityNumber(parseQuantity(capacity['memory'] ?? '0'))
  return measuredNode({ name, startedMs, capacityBytes, pods: pods.values() }, clock.now())
}

function runningPods({ pods }: NodeLife): number {
  return Array.from(pods.values()).filter(({ written }) => written.phase === 'Running').length
}

function refuse({ exchange, node, parts }: Request): void {
  const what = `${parts[0]} is not possible on node ${node.name}: its containers are simulated and run no programs`
  exchange.respond(501, TEXT, what)
}

async function answerLog(request: Request): Promise<void> {
  const { exchange, node, parts, query, clock } = request
  const [, namespace = '', name = '', container = ''] = parts
  const pod = podNamed(node, namespace, name)
  if (pod === undefined) return exchange.respond(404, TEXT, `pod ${goQuote(name)} does not exist`)
  const life = pod.lives.find(({ spec }) => spec.name === container)
  if (life === undefined) {
    return exchange.respond(404, TEXT, `container ${goQuote(container)} not found in pod ${goQuote(name)}`)
  }
  const wish = logWishOf(query, clock.now())
  if ('status' in wish) return exchange.respond(wish.status, TEXT, wish.text)
  const run = !wish.previous ? life.run : isPrevious(life) ? life.run : life.lastRun
  if (run === undefined) return exchange.respond(400, TEXT, whyNoLog(life, name, wish.previous))
  await sendLog(request, life, run, wish)
}

function podNamed({ pods }: NodeLife, namespace: string, name: string): PodLife | undefined {
  for (const life of pods.values()) {
    const { metadata } = life.pod
    if (metadata.name === name && metadata.namespace === namespace) return life
  }
  return undefined
}

/** How often those who follow are told what is new. */
const FOLLOW_MS = 1000

async function sendLog({ exchange, clock }: Request, life: ContainerLife, run: Run, options: LogWish): Promise<void> {
  let untilMs = clock.now()
  const first = Buffer.from(logText(linesOf(life, run, untilMs), options))
  if (!options.follow || run.end !== undefined) {
    return exchange.respond(200, [], first.subarray(0, Math.min(first.length, options.limitBytes)))
  }
  const writer = exchange.stream(200, [])
  const closed = new AbortController()
  writer.onClose(() => closed.abort())
  writer.write(first)
  while (run.end === undefined && !writer.isClosed) {
    await sleep(clock, FOLLOW_MS, closed.signal).catch(() => undefined)
    const seenMs = untilMs
    untilMs = clock.now()
    const lines = linesOf(life, run, untilMs).filter(({ atMs }) => atMs > seenMs)
    if (lines.length > 0 && !writer.isClosed)
      writer.write(Buffer.from(logText(lines, { timestamps: options.timestamps })))
  }
  writer.end()
}
