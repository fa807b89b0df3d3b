/** Tests the ingress controller with an API server. HTTP servers in the test process act as pods. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as httpRequest, type Server } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'

import { type Service, Services, Secrets } from '#apis/core/v1.ts'
import { IngressClasses, type Ingress, Ingresses } from '#apis/networking/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { resolveAllowed } from '#ingress/forbidden-addresses.ts'
import { startIngressController, type IngressController } from '#ingress/start.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpRequest } from '#lib/http/client.ts'
import type { Logger } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const quiet = { info: () => undefined, error: () => undefined } as unknown as Logger
const random = createSeededRandom(1)
const authority = createAuthority({ commonName: 'test' }, { clock: realClock, random })

interface Response {
  readonly status: number
  readonly text: string
  readonly headers: IncomingMessage['headers']
  readonly certificateOf: string
}

describe('ingress controller', () => {
  const closing = new AsyncDisposableStack()
  let plane: ControlPlane
  let client: ApiClient
  let controller: IngressController
  let pods: Server

  before(async () => {
    plane = closing.use(await startControlPlane())
    const transport = createHttpClient({ clock: realClock, tls: { ca: plane.ca } })
    closing.defer(() => transport.close())
    const { token } = plane
    const bearing = <T extends HttpRequest>(asked: T): T => ({
      ...asked,
      headers: { ...asked.headers, authorization: `Bearer ${token}` },
    })
    const authorized = { request: (asked: HttpRequest) => transport.request(bearing(asked)) }
    client = new ApiClient({ transport: authorized, server: plane.url, clock: realClock, userAgent: 'test' })
    pods = createServer((asked, answer) => {
      if (asked.url === '/slow') return void answer.writeHead(200).write('half')
      asked.pipe(answer.writeHead(200, { 'x-pod': 'one', 'x-seen': JSON.stringify(asked.headers) }))
      if (asked.method === 'GET') answer.end(`${asked.headers.host} ${asked.url}`)
    })
    pods.on('upgrade', (_, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.pipe(socket)
    })
    pods.listen(0, '127.0.0.1')
    await once(pods, 'listening')
    closing.defer(() => (pods.closeAllConnections(), void pods.close()))
    await client.create(IngressClasses, { metadata: { name: 'nginx' }, spec: { controller: 'k8s.io/ingress-nginx' } })
    await createService('web', (pods.address() as AddressInfo).port)
    await createService('gone', 1)
    controller = await startIngressController(
      {
        client,
        clock: realClock,
        random,
        log: quiet,
        address: '127.0.0.1',
        httpPort: 0,
        httpsPort: 0,
        classes: { controller: 'k8s.io/ingress-nginx', className: 'nginx', takesUnclassed: false },
        settings: undefined,
        defaultBackend: undefined,
        defaultCertificate: undefined,
        resolve: async (host) => (host === 'localhost' ? '127.0.0.1' : resolveAllowed(host)),
      },
      closing,
    )
  })
  after(() => closing.disposeAsync())

  /** Addresses of endpoints may not be loopback's; this one name may lead there, in this test only. */
  async function createService(name: string, port: number, externalName = 'localhost'): Promise<void> {
    const spec = { type: 'ExternalName', externalName, ports: [{ port }] }
    await client.create<Service>(Services, { metadata: { name, namespace: 'default' }, spec } as never)
  }

  /** With annotations its path is a regular expression. */
  async function createIngress(
    name: string,
    host: string,
    service: string,
    { annotations, ...rest }: { readonly annotations?: Readonly<Record<string, string>>; readonly tls?: object[] } = {},
  ): Promise<void> {
    const { spec } = await client.get(Services, { namespace: 'default', name: service })
    const backend = { service: { name: service, port: { number: spec.ports?.[0]?.port } } }
    const path =
      annotations === undefined
        ? { path: '/', pathType: 'Prefix', backend }
        : { path: '/(.*)', pathType: 'ImplementationSpecific', backend }
    const object = {
      metadata: { name, namespace: 'default', ...(annotations && { annotations }) },
      spec: { ingressClassName: 'nginx', rules: [{ host, http: { paths: [path] } }], ...rest },
    }
    await client.create<Ingress>(Ingresses, object as never)
  }

  function ask(host: string, path = '/', { secure = false, body = '' } = {}): Promise<Response> {
    const send = secure ? httpsRequest : httpRequest
    const port = secure ? controller.httpsPort : controller.httpPort
    const method = body === '' ? 'GET' : 'POST'
    const tls = secure ? { servername: host, rejectUnauthorized: false } : {}
    const { promise, resolve, reject } = Promise.withResolvers<Response>()
    const asking = send(
      { host: '127.0.0.1', port, path, method, headers: { host }, agent: false, ...tls },
      (answer) => {
        const { socket } = answer as unknown as { socket: { getPeerCertificate?(): { subject: { CN: string } } } }
        const certificateOf = socket.getPeerCertificate?.().subject.CN ?? ''
        let text = ''
        answer.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, text, headers: answer.headers, certificateOf }),
        )
        answer.on('error', reject)
      },
    )
    asking.on('error', reject)
    asking.end(body)
    return promise
  }

  const untilStatus = (host: string, status: number, secure = false): Promise<Response> =>
    eventually(
      () => ask(host, '/', { secure }),
      (told) => told.status === status,
    )

  it('responds with 404 if no path matches', async () => {
    const told = await ask('nobody.example')
    assert.deepEqual([told.status, told.text], [404, 'default backend - 404'])
  })

  it('forwards requests to the pods of an Ingress while it exists', async () => {
    await createIngress('web', 'web.example', 'web')
    await untilStatus('web.example', 200)
    const told = await ask('web.example', '/a/b?c=d')
    assert.equal(told.text, 'web.example /a/b?c=d')
    const seen = JSON.parse(String(told.headers['x-seen'])) as Record<string, string>
    assert.deepEqual([seen['x-forwarded-for'], seen['x-forwarded-proto']], ['127.0.0.1', 'http'])
    const posted = await ask('web.example', '/', { body: 'x'.repeat(1 << 20) })
    assert.equal(posted.text.length, 1 << 20)
    await client.delete(Ingresses, { namespace: 'default', name: 'web' })
    await untilStatus('web.example', 404)
  })

  it('responds with 502 if a pod is unreachable', async () => {
    await createIngress('gone', 'gone.example', 'gone')
    await untilStatus('gone.example', 502)
  })

  it('presents the certificate of the host, and redirects clients to HTTPS', async () => {
    const issued = authority.issue({ commonName: 'safe', names: { dns: ['safe.example'] }, purpose: 'server' })
    const data = {
      'tls.crt': Buffer.from(issued.certificatePem).toString('base64'),
      'tls.key': Buffer.from(issued.keyPem).toString('base64'),
    }
    const metadata = { name: 'safe', namespace: 'default' }
    await createIngress('safe', 'safe.example', 'web', { tls: [{ hosts: ['safe.example'], secretName: 'safe' }] })
    await untilStatus('safe.example', 308)
    const before = await ask('safe.example', '/', { secure: true })
    assert.match(before.certificateOf, /Fake Certificate/)
    await client.create(Secrets, { metadata, type: 'kubernetes.io/tls', data })
    const told = await eventually(
      () => ask('safe.example', '/', { secure: true }),
      ({ certificateOf }) => certificateOf === 'safe',
    )
    assert.equal(told.status, 200)
    assert.match(String((await ask('safe.example', '/x')).headers.location), /^https:\/\/safe\.example(?::\d+)?\/x$/)
  })

  it('refuses a Service that leads to the machine itself, under any name', async () => {
    const { port } = pods.address() as AddressInfo
    for (const [at, name] of ['127.0.0.1', '127.1', '0x7f000001', '0.0.0.0', 'ip6-localhost'].entries()) {
      await createService(`inner-${at}`, port, name)
      await createIngress(`inner-${at}`, `inner-${at}.example`, `inner-${at}`)
      const status = name === 'ip6-localhost' ? [502, 503] : [503]
      const told = await eventually(
        () => ask(`inner-${at}.example`),
        (answer) => answer.status !== 404,
      )
      assert.ok(status.includes(told.status), `${name}: ${told.status}`)
    }
    const headers = { host: 'inner-0.example', connection: 'Upgrade', upgrade: 'websocket' }
    const asking = httpRequest({ host: '127.0.0.1', port: controller.httpPort, headers })
    asking.end()
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    assert.equal(answer.statusCode, 503)
    answer.destroy()
  })

  it('forwards a rewritten path unchanged, and never responds with 500', async () => {
    const annotations = { 'nginx.ingress.kubernetes.io/rewrite-target': '/$1' }
    await createIngress('rewritten', 'rewritten.example', 'web', { annotations })
    await untilStatus('rewritten.example', 200)
    for (const path of ['/%252e%252e/x', '/a%3Fb?c=d', '/a%20b', '/%23', '/100%25?e=%20'])
      assert.equal((await ask('rewritten.example', path)).text, `rewritten.example ${path}`)
  })

  it('upgrades connections to another protocol', async () => {
    await createIngress('socket', 'socket.example', 'web')
    await untilStatus('socket.example', 200)
    const headers = { host: 'socket.example', connection: 'Upgrade', upgrade: 'websocket' }
    const asking = httpRequest({ host: '127.0.0.1', port: controller.httpPort, headers })
    asking.end()
    const [, socket] = (await once(asking, 'upgrade')) as [IncomingMessage, Socket]
    socket.write('hello')
    const [echo] = (await once(socket, 'data')) as [Buffer]
    assert.equal(echo.toString(), 'hello')
    socket.destroy()
  })

  it('aborts a response that the pod aborts', async () => {
    const asking = httpRequest({
      host: '127.0.0.1',
      port: controller.httpPort,
      path: '/slow',
      headers: { host: 'socket.example' },
    })
    asking.end()
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    await once(answer, 'data')
    const broken = once(answer, 'error')
    pods.closeAllConnections()
    await broken
  })
})
