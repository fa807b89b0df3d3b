/**
 * The kubelet API of simulated nodes. It generates logs, stats and metrics, and rejects requests that need a real
 * process. One handler serves all nodes; the requested address selects the node.
 */
import { type MeasuredNode, statsSummary } from '#kubelet/machine/node-stats.ts'
import { resourceMetrics } from '#kubelet/metrics/resource.ts'
import type { Run } from '#kubelet/pod/container-runs.ts'
import { isPrevious, type LogOptions, noLogMessage, parseLogOptions } from '#kubelet/pod/log-options.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { METRICS_CONTENT_TYPE } from '#lib/metrics/metrics.ts'
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'

import { linesOf, logText } from './container-log.ts'
import { plainMetrics } from './plain-metrics.ts'
import type { SimulatedContainer } from './simulated-container.ts'
import type { SimulatedNode } from './simulated-node.ts'
import type { SimulatedPod } from './simulated-pod.ts'
import { measuredNode } from './usage.ts'

const TEXT: HeaderList = ['Content-Type', 'text/plain; charset=utf-8']
const JSON_TYPE: HeaderList = ['Content-Type', 'application/json']
const METRICS: HeaderList = ['Content-Type', METRICS_CONTENT_TYPE]

export interface SimulatedApiOptions {
  readonly clock: Clock
  /** The node with this address. */
  readonly nodeAt: (address: string) => SimulatedNode | undefined
}

interface SimulatedRequest {
  readonly exchange: Exchange
  readonly node: SimulatedNode
  readonly parts: readonly string[]
  readonly query: URLSearchParams
  readonly clock: Clock
}

type SimulatedHandler = (request: SimulatedRequest) => void | Promise<void>

const HANDLERS: Readonly<Record<string, SimulatedHandler>> = {
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

export function createSimulatedApi({ clock, nodeAt }: SimulatedApiOptions): (exchange: Exchange) => Promise<void> {
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

function measuredOf({ name, pods, startedMs, capacity }: SimulatedNode, clock: Clock): MeasuredNode {
  const capacityBytes = quantityNumber(parseQuantity(capacity['memory'] ?? '0'))
  return measuredNode({ name, startedMs, capacityBytes, pods: pods.values() }, clock.now())
}

function runningPods({ pods }: SimulatedNode): number {
  return Array.from(pods.values()).filter(({ written }) => written.phase === 'Running').length
}

function refuse({ exchange, node, parts }: SimulatedRequest): void {
  const what = `${parts[0]} is not possible on node ${node.name}: its containers are simulated and run no programs`
  exchange.respond(501, TEXT, what)
}

async function answerLog(request: SimulatedRequest): Promise<void> {
  const { exchange, node, parts, query, clock } = request
  const [, namespace = '', name = '', containerName = ''] = parts
  const pod = podNamed(node, namespace, name)
  if (pod === undefined) return exchange.respond(404, TEXT, `pod ${goQuote(name)} does not exist`)
  const container = pod.containers.find(({ spec }) => spec.name === containerName)
  if (container === undefined) {
    return exchange.respond(404, TEXT, `container ${goQuote(containerName)} not found in pod ${goQuote(name)}`)
  }
  const options = parseLogOptions(query, clock.now())
  if ('status' in options) return exchange.respond(options.status, TEXT, options.text)
  const run = !options.previous ? container.run : isPrevious(container) ? container.run : container.lastRun
  if (run === undefined) return exchange.respond(400, TEXT, noLogMessage(container, name, options.previous))
  await sendLog(request, container, run, options)
}

function podNamed({ pods }: SimulatedNode, namespace: string, name: string): SimulatedPod | undefined {
  for (const container of pods.values()) {
    const { metadata } = container.pod
    if (metadata.name === name && metadata.namespace === namespace) return container
  }
  return undefined
}

/** Interval at which followers of a log get new lines. */
const FOLLOW_MS = 1000

async function sendLog(
  { exchange, clock }: SimulatedRequest,
  container: SimulatedContainer,
  run: Run,
  options: LogOptions,
): Promise<void> {
  let untilMs = clock.now()
  const first = Buffer.from(logText(linesOf(container, run, untilMs), options))
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
    const lines = linesOf(container, run, untilMs).filter(({ atMs }) => atMs > seenMs)
    if (lines.length > 0 && !writer.isClosed)
      writer.write(Buffer.from(logText(lines, { timestamps: options.timestamps })))
  }
  writer.end()
}
