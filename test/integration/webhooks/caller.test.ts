/** Tests the webhook client against a real HTTPS server: requests, responses, and error messages. */
import assert from 'node:assert/strict'
import { createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'

import { Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ObjectReader } from '#apiserver/registry/resource.ts'
import {
  createWebhookCaller,
  type WebhookCall,
  type WebhookClientConfig,
  WebhookError,
} from '#apiserver/webhooks/caller.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import { startWebhookServer, type WebhookServer } from './webhook-server.ts'

const review = { group: 'admission.k8s.io', version: 'v1', kind: 'AdmissionReview' }

/** Returns a Service `hook` without selector, with an endpoint that a user wrote, and one without endpoints. */
function objectsWith(port: number): ObjectReader {
  const service = (name: string): KubeObject =>
    ({ metadata: { name, namespace: 'default' }, spec: { ports: [{ port: 443, name: 'https' }] } }) as KubeObject
  const slice = {
    metadata: { name: 'by-hand', namespace: 'default', labels: { 'kubernetes.io/service-name': 'hook' } },
    addressType: 'IPv4',
    endpoints: [
      { addresses: ['10.9.8.6'], conditions: { ready: false } },
      { addresses: ['10.9.8.7'], conditions: {} },
    ],
    ports: [{ name: 'https', port }],
  } as unknown as KubeObject
  const get = (kind: Kind, name: string): KubeObject | undefined =>
    kind === (Services as Kind) && ['hook', 'empty'].includes(name) ? service(name) : undefined
  return {
    get: (kind, _namespace, name) => Promise.resolve(get(kind as Kind, name) as never),
    list: (kind) => Promise.resolve((kind === (EndpointSlices as Kind) ? [slice] : []) as never[]),
  }
}

describe('call of a webhook', () => {
  let server: WebhookServer
  let caller: ReturnType<typeof createWebhookCaller>
  before(async () => {
    server = await startWebhookServer()
    const network = { routeTo: (address: string) => (address === '10.9.8.7' ? '127.0.0.1' : address) }
    caller = createWebhookCaller({ clock: realClock, random: secureRandom, objects: objectsWith(server.port), network })
    server.on('/ok', () => ({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'u', allowed: true },
    }))
  })
  after(async () => {
    caller.close()
    await server.close()
  })

  const call = (config: WebhookClientConfig, more: Partial<WebhookCall> = {}): Promise<unknown> =>
    caller.call({ config: { caBundle: server.caBundle, ...config }, body: '{"a":1}', review, timeoutMs: 2000, ...more })
  const at = (path: string): WebhookClientConfig => ({ url: server.url(path) })
  const failing = async (config: WebhookClientConfig, more: Partial<WebhookCall> = {}): Promise<WebhookError> => {
    const failed = await call(config, more).then(
      () => assert.fail('There was an answer'),
      (error: unknown) => error,
    )
    assert.ok(failed instanceof WebhookError, String(failed))
    return failed
  }
  const saying = async (path: string): Promise<string> => (await failing(at(path))).message

  it('sends JSON by POST with the timeout', async () => {
    await call(at('/ok'))
    const { method, url, headers, text } = server.asked.at(-1)!
    assert.deepEqual([method, url, text], ['POST', '/ok?timeout=2s', '{"a":1}'])
    assert.equal(headers['user-agent'], 'kube-apiserver-admission')
    assert.equal(headers.accept, 'application/json, */*')
    assert.equal(headers['content-type'], 'application/json')
    assert.equal(headers['content-length'], '7')
  })

  it('reuses the connection of the previous call', async () => {
    const before = server.connections
    for (let turn = 0; turn < 5; turn++) await call(at('/ok'))
    assert.ok(server.connections - before <= 1)
  })

  it('returns the review', async () => {
    assert.deepEqual(await call(at('/ok')), {
      gvk: review,
      claimed: review,
      object: { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', response: { uid: 'u', allowed: true } },
      offences: [],
    })
  })

  it('uses the endpoints of the Service, with the Service name in TLS', async () => {
    const service = { namespace: 'default', name: 'hook', path: '/ok', port: 443 }
    await call({ service })
    assert.equal(server.asked.at(-1)?.headers.host, 'hook.default.svc')
    const url = (name: string, port = 443): string => `Post "https://${name}.default.svc:${port}/?timeout=2s": `
    const missing = async (name: string, port: number): Promise<string> =>
      (await failing({ service: { namespace: 'default', name, port } })).message
    assert.equal(await missing('nosvc', 443), `${url('nosvc')}service "nosvc" not found`)
    assert.equal(await missing('hook', 99), `${url('hook', 99)}no service port 99 found for service "hook"`)
    assert.equal(await missing('empty', 443), `${url('empty')}no endpoints available for service "empty"`)
  })

  it('fails with the text of a response that is no review', async () => {
    const answers: readonly (readonly [body: string, text: string])[] = [
      [
        '{not json',
        "couldn't get version/kind; json parse error: invalid character 'n' looking for beginning of object key string",
      ],
      ['', '0-length response with status code: 200 and content type: application/json'],
      [
        '{"apiVersion":"admission.k8s.io/v1","kind":"Foo"}',
        'no kind "Foo" is registered for version "admission.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"',
      ],
      [
        '{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}',
        'converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion',
      ],
    ]
    for (const [body, text] of answers) {
      server.on('/nonsense', () => body)
      assert.equal(await saying('/nonsense'), text)
    }
  })

  it('fails with the status code or Status of the response', async () => {
    const answers: readonly (readonly [code: number, type: string, body: string, text: string])[] = [
      [
        500,
        'text/plain',
        'boom text\n',
        'an error on the server ("boom text") has prevented the request from succeeding',
      ],
      [404, 'text/plain', 'gone', 'the server could not find the requested resource'],
      [418, 'text/plain', 'x', 'the server responded with the status code 418 but did not return more information'],
      [
        500,
        'application/json',
        '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"so there"}',
        'so there',
      ],
    ]
    for (const [code, type, body, text] of answers) {
      server.on('/failing', (_, response) => void response.writeHead(code, { 'content-type': type }).end(body))
      const failed = await failing(at('/failing'))
      assert.equal(failed.message, text)
      assert.equal(failed.status, body.startsWith('{') ? 500 : code)
    }
  })

  it('does not follow redirects', async () => {
    const canary = server.asked.length
    server.on('/away', (_, response) => void response.writeHead(307, { location: server.url('/ok') }).end())
    assert.match(await saying('/away'), /^the server responded with the status code 307/)
    assert.equal(server.asked.length, canary + 1)
  })

  it('ends at the timeout and closes the connection', async () => {
    server.on('/hangs', () => undefined)
    const failed = await failing(at('/hangs'), { timeoutMs: 50 })
    assert.equal(failed.message, `Post "${server.url('/hangs')}?timeout=1s": context deadline exceeded`)
    assert.equal(failed.status, 503)
    server.on('/half', (_, response) => void response.writeHead(200).write('{"kind":'))
    assert.match((await failing(at('/half'), { timeoutMs: 50 })).message, /: context deadline exceeded$/)
    await idle(server)
  })

  it('ends when the request is aborted', async () => {
    const leaving = new AbortController()
    server.on('/waits', () => void setImmediate(() => leaving.abort()))
    assert.match((await failing(at('/waits'), { signal: leaving.signal })).message, /: context canceled$/)
    await idle(server)
  })

  it('reports the stage at which the connection was closed', async () => {
    server.on('/closes', (_, response) => void response.socket?.end())
    assert.equal(await saying('/closes'), `Post "${server.url('/closes')}?timeout=2s": EOF`)
    server.on('/breaks', (_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"kind":')
      setImmediate(() => response.socket?.end())
    })
    assert.equal(
      await saying('/breaks'),
      'unexpected error when reading response body. Please retry. Original error: unexpected EOF',
    )
  })

  it('ends if the response never ends', async () => {
    server.on('/endless', (_, response) => {
      const source = Readable.from(endless())
      source.on('error', () => undefined)
      response.once('close', () => source.destroy())
      source.pipe(response.writeHead(200))
    })
    const failed = await failing(at('/endless'), { limitBytes: 1 << 20 })
    assert.match(failed.message, /Original error: The answer is larger than 1048576 bytes$/)
    await idle(server)
  })

  it('fails before it connects if the CA bundle is invalid', async () => {
    const failed = await failing({ ...at('/ok'), caBundle: 'bm9uZQ==' })
    assert.deepEqual(
      [failed.phase, failed.status, failed.message],
      ['client', 500, 'unable to load root certificates: unable to parse bytes as PEM block'],
    )
  })

  it('fails for a certificate of another CA', async () => {
    const post = (url: string): string => `Post "${url}?timeout=2s": tls: failed to verify certificate: x509: `
    const { caBundle: _, ...rest } = at('/ok')
    const stranger = await failing({ ...rest, caBundle: '' })
    assert.equal(stranger.message, `${post(server.url('/ok'))}certificate signed by unknown authority`)
    const names: readonly (readonly [names: { dns?: string[]; ips?: string[] } | undefined, text: string])[] = [
      [{ dns: ['a', 'b'] }, "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"],
      [{ ips: ['127.0.0.9'] }, 'certificate is valid for 127.0.0.9, not 127.0.0.1'],
      [undefined, "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"],
    ]
    for (const [given, text] of names) {
      await using other = await startWebhookServer(given ?? {})
      assert.equal((await failing({ url: other.url('/ok') })).message, post(other.url('/ok')) + text)
    }
  })

  it('has distinct errors for a server without TLS and for a port without a listener', async () => {
    const plain = await listen((socket) => void socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const url = `https://127.0.0.1:${plain.port}/x`
    assert.equal(
      (await failing({ url })).message,
      `Post "${url}?timeout=2s": tls: first record does not look like a TLS handshake`,
    )
    await plain.close()
    assert.equal(
      (await failing({ url })).message,
      `Post "${url}?timeout=2s": dial tcp 127.0.0.1:${plain.port}: connect: connection refused`,
    )
  })
})

function* endless(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(1 << 16, 'x')
}

/** Resolves when only the keep-alive connection is open. */
async function idle({ open }: WebhookServer): Promise<void> {
  while (open.size > 1) await new Promise((resolve) => setImmediate(resolve))
}

async function listen(onSocket: (socket: Socket) => void): Promise<{ port: number; close(): Promise<void> }> {
  const server: Server = createPlainServer(onSocket)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return { port, close: () => new Promise((resolve) => server.close(() => resolve())) }
}
