/** `pods/log`: proxies a container's log from its kubelet. */
import type { Pod, PodLogOptions } from '#apis/core/v1.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import { onAbort } from '#lib/abort.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { acceptWebSocket, offeredProtocols, WebSocketError } from '#lib/http/websocket.ts'
import { decodeQuery, type QueryShape } from '#meta/query.ts'
import { badRequestError, failure, genericError, internalError, invalidError } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import type { Handler } from '../dispatch.ts'
import { type ConnectContext, podOf } from './context.ts'
import { dialText } from './dial-text.ts'
import { chooseContainer, hostPort, kubeletOf } from './kubelet-location.ts'
import { firstOf, relayed } from './relay.ts'

type LogOptions = Omit<PodLogOptions, 'kind' | 'apiVersion'>

const LOG_QUERY: QueryShape<LogOptions> = {
  container: 'string',
  follow: 'bool',
  previous: 'bool',
  sinceSeconds: 'int?',
  sinceTime: 'time?',
  timestamps: 'bool',
  tailLines: 'int?',
  limitBytes: 'int?',
  insecureSkipTLSVerifyBackend: 'bool',
  stream: 'string?',
}

/** The maximum size of a kubelet's error. */
const MAX_ERROR_BYTES = 50_000

export function createLogHandler(context: ConnectContext): Handler {
  return async (call, { services }) => {
    const canSplit = context.isEnabled('PodLogsQuerySplitStreams')
    const options = logOptionsOf(call.query, canSplit)
    context.count.logRequested(options.insecureSkipTLSVerifyBackend !== true)
    const errors = validateLogOptions(options, canSplit)
    const { namespace, name } = call.info
    if (errors.length > 0) throw invalidError({ group: '', kind: 'PodLogOptions' }, name, errors)
    const pod = await podOf(services.objects, namespace, name)
    const container = chooseContainer(pod, options.container ?? '')
    const nodeName = pod.spec?.nodeName ?? ''
    // No response was sent yet.
    if (nodeName === '') return { status: 204, contentType: '', body: '' }
    const { host, port } = await kubeletOf(nodeName, services.objects, context.kubelet)
    const url = `https://${hostPort(host, port)}${logPath(pod, container, options)}`
    const response = await openLog(call, context, { url, options })
    if (response.status < 200 || response.status > 206) throw await refusal(response, url, name)
    return call.exchange.upgradeProtocol === 'websocket'
      ? webSocketAnswer(call.exchange, context, response)
      : { status: 200, contentType: 'text/plain', ...relayed(response) }
  }
}

function logOptionsOf(query: URLSearchParams, canSplit: boolean): LogOptions {
  const options = decodeQuery(LOG_QUERY, query)
  return canSplit ? { ...options, stream: options.stream ?? 'All' } : options
}

/** Upstream's text for the path of no field. */
const NO_FIELD = fieldPath('[]')

export function validateLogOptions(options: LogOptions, canSplit: boolean): FieldError[] {
  const { tailLines, limitBytes, sinceSeconds, sinceTime, stream } = options
  const errors: FieldError[] = []
  if (tailLines !== undefined && tailLines < 0) {
    errors.push(fieldPath('tailLines').invalid(tailLines, 'must be greater than or equal to 0'))
  }
  if (limitBytes !== undefined && limitBytes < 1)
    errors.push(fieldPath('limitBytes').invalid(limitBytes, 'must be greater than 0'))
  if (sinceSeconds !== undefined && sinceTime !== undefined) {
    errors.push(NO_FIELD.forbidden('at most one of `sinceTime` or `sinceSeconds` may be specified'))
  } else if (sinceSeconds !== undefined && sinceSeconds < 1) {
    errors.push(fieldPath('sinceSeconds').invalid(sinceSeconds, 'must be greater than 0'))
  }
  if (stream === undefined) return errors
  if (!canSplit) return [...errors, fieldPath('stream').forbidden('may not be specified')]
  return [...errors, ...validateStream(stream, tailLines)]
}

function validateStream(stream: string, tailLines: number | undefined): FieldError[] {
  const known = ['All', 'Stderr', 'Stdout']
  return collectErrors(
    !known.includes(stream) && fieldPath('stream').notInSet(stream, known),
    stream !== 'All' &&
      tailLines !== undefined &&
      NO_FIELD.forbidden('`tailLines` and specific `stream` are mutually exclusive for now'),
  )
}

/** The kubelet's query; its options have the same names. */
const PASSED_ON = ['sinceSeconds', 'sinceTime', 'tailLines', 'limitBytes', 'stream'] as const
const SWITCHES = ['follow', 'previous', 'timestamps'] as const

function logPath({ metadata }: Pod, container: string, options: LogOptions): string {
  const query = new URLSearchParams()
  for (const name of SWITCHES) if (options[name] === true) query.set(name, 'true')
  for (const name of PASSED_ON) if (options[name] !== undefined) query.set(name, String(options[name]))
  query.sort()
  const path = `/containerLogs/${metadata.namespace ?? ''}/${metadata.name ?? ''}/${container}`
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

async function openLog(
  call: Call,
  { backends, count }: ConnectContext,
  { url, options }: { readonly url: string; readonly options: LogOptions },
): Promise<HttpResponse> {
  const client = options.insecureSkipTLSVerifyBackend === true ? backends.unverifiedKubelet : backends.kubelet
  try {
    return await client.request({ url, signal: call.signal })
  } catch (cause) {
    const why = dialText(cause, new URL(url).host)
    if (why.includes('x509:')) count.logTlsFailed()
    throw failure({ code: 500, message: `Get "${url}": ${why}` }, { cause })
  }
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

async function refusal(response: HttpResponse, url: string, name: string): Promise<StatusError> {
  const { status, headers } = response
  // A redirect of a kubelet must not receive the server's credentials (CVE-2018-1002102).
  if (REDIRECTS.has(status) && headers.location !== undefined) {
    response.discard()
    return failure({ code: 500, message: `Get "${url}": redirects forbidden` })
  }
  const text = await textOf(response)
  if (status === 500) return internalError(new Error(text))
  if (status === 400) return badRequestError(text)
  const resource = { group: '', resource: 'pods/log' }
  return genericError({ code: status, method: '', resource, name, serverMessage: text })
}

async function textOf({ body }: HttpResponse): Promise<string> {
  try {
    return (await firstOf(body, MAX_ERROR_BYTES)).toString()
  } catch (cause) {
    throw internalError(cause as Error)
  }
}

/** WebSocket subprotocols of a log; the empty one is for clients that offer none. */
const BINARY = ['', 'binary.k8s.io']
const BASE64 = 'base64.binary.k8s.io'

function webSocketAnswer(exchange: Exchange, { clock }: ConnectContext, response: HttpResponse): Answer {
  const offered = offeredProtocols(exchange)
  const chosen = (offered.length === 0 ? [''] : offered).find((name) => name === BASE64 || BINARY.includes(name))
  if (chosen === undefined) {
    response.discard()
    return { status: 403, contentType: '', body: '' }
  }
  return {
    status: 101,
    drop: () => response.discard(),
    async upgrade(own, signal) {
      const release = onAbort(signal, () => response.discard())
      try {
        const choose = (): string | undefined => (chosen === '' ? undefined : chosen)
        await sendLog(await acceptWebSocket(own, { clock, choose }), response, chosen === BASE64)
      } catch (error) {
        // The client left or sent an invalid handshake; there is nothing to report.
        if (!(error instanceof WebSocketError)) throw error
      } finally {
        release()
        response.discard()
      }
    },
  }
}

async function sendLog(
  socket: Awaited<ReturnType<typeof acceptWebSocket>>,
  response: HttpResponse,
  isText: boolean,
): Promise<void> {
  // Clients send nothing; reading detects that the client leaves.
  const gone = (async () => {
    for await (const _ of socket) void _
  })().catch(() => undefined)
  void gone.then(() => response.discard())
  const encode = (piece: Buffer): Buffer | string => (isText ? piece.toString('base64') : piece)
  await socket.send(encode(Buffer.alloc(0)))
  try {
    for await (const piece of response.body) await socket.send(encode(piece))
    await socket.close()
  } catch {
    socket.destroy()
  }
}
