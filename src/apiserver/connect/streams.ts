/**
 * `pods/exec`, `pods/attach` and `pods/portforward`: streams to a pod through its kubelet, by SPDY/3.1 or WebSocket.
 * For kubelets without WebSocket support the server translates WebSocket to SPDY.
 */
import type { PodAttachOptions, PodExecOptions, PodPortForwardOptions } from '#apis/core/v1.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import { goQuote } from '#lib/go/text.ts'
import { offeredProtocols } from '#lib/http/websocket.ts'
import { decodeQuery, type QueryShape } from '#meta/query.ts'
import { badRequestError } from '#meta/status-errors.ts'

import type { Handler } from '../dispatch.ts'
import { admitConnect, type ConnectContext, podOf } from './context.ts'
import { chooseContainer, hostPort, kubeletOf } from './kubelet-location.ts'
import { isTranslatable, translate } from './stream-translator.ts'
import { isTunnel, tunnel } from './stream-tunnel.ts'
import { passUpgrade, type UpgradeTarget } from './stream-upgrade.ts'

type Own<T> = Omit<T, 'kind' | 'apiVersion'>
type StreamOptions = Partial<Own<PodExecOptions> & Own<PodAttachOptions> & Own<PodPortForwardOptions>>

export interface StreamKind {
  /** The kind of its options. */
  readonly options: string
  /** Of the kubelet's path. */
  readonly path: string
  readonly decode: (query: URLSearchParams) => StreamOptions
  readonly hasContainer: boolean
}

const ATTACH_QUERY: QueryShape<Own<PodAttachOptions>> = {
  stdin: 'bool',
  stdout: 'bool',
  stderr: 'bool',
  tty: 'bool',
  container: 'string',
}
const EXEC_QUERY: QueryShape<Own<PodExecOptions>> = { ...ATTACH_QUERY, command: 'strings' }

export const EXEC: StreamKind = {
  options: 'PodExecOptions',
  path: 'exec',
  decode: (query) => decodeQuery(EXEC_QUERY, query),
  hasContainer: true,
}
export const ATTACH: StreamKind = {
  options: 'PodAttachOptions',
  path: 'attach',
  decode: (query) => decodeQuery(ATTACH_QUERY, query),
  hasContainer: true,
}
export const PORT_FORWARD: StreamKind = {
  options: 'PodPortForwardOptions',
  path: 'portForward',
  decode: decodePorts,
  hasContainer: false,
}

/** `ports` may be repeated, and each may contain several. */
function decodePorts(query: URLSearchParams): StreamOptions {
  const texts = query.getAll('ports').flatMap((text) => text.split(','))
  return texts.length === 0 ? {} : { ports: texts.map(portOf) }
}

function portOf(text: string): number {
  const why = !/^\d+$/.test(text) ? 'invalid syntax' : Number(text) > 65_535 ? 'value out of range' : undefined
  if (why === undefined) return Number(text)
  throw badRequestError(`cannot convert to []int32: strconv.ParseUint: parsing ${goQuote(text)}: ${why}`)
}

export function createStreamHandler(context: ConnectContext, kind: StreamKind): Handler {
  return async (call, view) => {
    const options = kind.decode(call.query)
    await admitConnect(call, view, kind.options, options)
    // A WebSocket starts with a GET, but needs the right to create like a POST.
    if (context.isEnabled('AuthorizePodWebsocketUpgradeCreatePermission')) await call.demand('create')
    const { objects } = view.services
    const { namespace, name } = call.info
    const pod = await podOf(objects, namespace, name)
    const container = kind.hasContainer ? `/${chooseContainer(pod, options.container ?? '')}` : ''
    const nodeName = pod.spec?.nodeName ?? ''
    if (nodeName === '') throw badRequestError(`pod ${name} does not have a host assigned`)
    const { host, port, features } = await kubeletOf(nodeName, objects, context.kubelet)
    if (call.exchange.upgradeProtocol === undefined) throw badRequestError('Upgrade request required')
    const target: UpgradeTarget = {
      client: context.backends.kubelet,
      url: `https://${hostPort(host, port)}`,
      path: `/${kind.path}/${namespace}/${name}${container}${queryOf(options)}`,
    }
    const isDirect = context.isEnabled('ExtendWebSocketsToKubelet') && features.includes('ExtendWebSocketsToKubelet')
    context.count.streaming(call.info.subresource, !isDirect)
    return isDirect ? passUpgrade(call, target, context.clock) : connect(call, target, context, options)
  }
}

function connect(
  call: Call,
  target: UpgradeTarget,
  { clock, count }: ConnectContext,
  options: StreamOptions,
): Answer | Promise<Answer> {
  const offered = call.exchange.upgradeProtocol === 'websocket' ? offeredProtocols(call.exchange) : []
  const isPortForward = call.info.subresource === 'portforward'
  if (!isPortForward && isTranslatable(offered)) return translate(target, { clock, count, wanted: options })
  if (isPortForward && isTunnel(offered)) return tunnel(call, target, { clock, count })
  return passUpgrade(call, target, clock)
}

/** The kubelet's names of the streams. */
const STREAM_NAMES = { stdin: 'input', stdout: 'output', stderr: 'error', tty: 'tty' } as const

function queryOf(options: StreamOptions): string {
  const query = new URLSearchParams()
  for (const [option, name] of Object.entries(STREAM_NAMES)) {
    if (options[option as keyof typeof STREAM_NAMES] === true) query.set(name, '1')
  }
  for (const word of options.command ?? []) query.append('command', word)
  if (options.ports !== undefined) query.set('port', options.ports.join(','))
  query.sort()
  return query.size === 0 ? '' : `?${query.toString()}`
}
