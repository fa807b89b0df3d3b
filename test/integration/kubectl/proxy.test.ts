/**
 * Tests `kubectl proxy` before a server that records request targets. Requests are written byte by byte, as an attacker
 * would.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'

import { runKubectl } from '#kubectl/kubectl.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

let server: Server
let folder = ''
const received: string[] = []

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-proxy-'))
  server = createServer((request, response) => {
    received.push(`${request.method} ${request.url}`)
    response.end('hello')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const cluster = { name: 'x', cluster: { server: `http://127.0.0.1:${port}/base` } }
  const contexts = [{ name: 'x', context: { cluster: 'x', user: 'x' } }]
  const config = { clusters: [cluster], users: [{ name: 'x', user: {} }], contexts, 'current-context': 'x' }
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(config))
})

after(async () => {
  server.closeAllConnections()
  server.close()
  await rm(folder, { recursive: true, force: true })
})

interface Proxy {
  /** Sends a request target as it is; returns the status of the answer. */
  send(target: string, host?: string): Promise<string>
  stop(): Promise<unknown>
}

async function startProxy(...flags: string[]): Promise<Proxy> {
  const controller = new AbortController()
  const { promise: started, resolve } = Promise.withResolvers<number>()
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const [, port] = /Starting to serve on .*:(\d+)/.exec(chunk.toString()) ?? []
      if (port !== undefined) resolve(Number(port))
      done()
    },
  })
  const context = {
    path: ['kubectl'],
    args: ['proxy', '--port=0', ...flags],
    env: { HOME: folder, KUBECONFIG: join(folder, 'kubeconfig') },
    cwd: folder,
    stdin: () => Readable.from([]),
    stdout,
    stderr: new Writable({ write: (_chunk, _encoding, done) => done() }),
    clock: realClock,
    random: secureRandom,
  } as unknown as Parameters<typeof runKubectl>[0]
  const running = runKubectl(context, controller.signal)
  const port = await started
  return {
    async send(target, host = 'localhost') {
      const socket = connect(port, '127.0.0.1')
      socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      const [, status = ''] = (await text(socket)).split(' ')
      return status
    },
    stop() {
      controller.abort()
      return running.catch(() => undefined)
    },
  }
}

describe('kubectl proxy', () => {
  it('forwards the path unchanged', async () => {
    const proxy = await startProxy()
    received.length = 0
    const targets = ['/api/v1/a%2e%2e?x=%2e&y=/../', '/a/%2e%2e/b', '/a%2Fb;c=1', '/a/%252e%252e/b', '/a/%2e/b']
    for (const target of targets) assert.equal(await proxy.send(target), '200', target)
    assert.deepEqual(
      received,
      targets.map((target) => `GET ${target}`),
    )
    received.length = 0
    assert.equal(await proxy.send('/a/b\\c'), '200')
    assert.equal(await proxy.send('http://localhost/api?x'), '200')
    assert.deepEqual(received, ['GET /a/b%5Cc', 'GET /api?x'])
    await proxy.stop()
  })

  it('keeps the path of the server with --append-server-path', async () => {
    const proxy = await startProxy('--append-server-path')
    received.length = 0
    assert.equal(await proxy.send('/a/%2e%2e/b'), '200')
    assert.equal(await proxy.send('/%2e%2e/other'), '403')
    assert.deepEqual(received, ['GET /base/a/%2e%2e/b'])
    await proxy.stop()
  })

  it('sends no request that --reject-paths matches, however the path is written', async () => {
    const proxy = await startProxy('--reject-paths=^/api/v1/secrets')
    received.length = 0
    const targets = ['/api/v1/secrets', '/api/v1/x/%2e%2e/secrets', '/api/v1/x/..\\secrets', '/api/v1/x%2f..%2fsecrets']
    for (const target of [...targets, '/api/v1/%2573ecrets', 'http://localhost/api/v1/secrets']) {
      assert.equal(await proxy.send(target), '403', target)
    }
    assert.equal(await proxy.send('/api/v1/x/../secrets'), '301')
    assert.equal(await proxy.send('/api/v1/%zz'), '400')
    assert.equal(await proxy.send('*'), '400')
    assert.deepEqual(received, [])
    await proxy.stop()
  })

  it('sends no request for a host that --accept-hosts does not match', async () => {
    const proxy = await startProxy()
    received.length = 0
    assert.equal(await proxy.send('/api', 'evil.example'), '403')
    assert.equal(await proxy.send('http://evil.example/api', 'localhost'), '403')
    assert.equal(await proxy.send('http://localhost/api', 'evil.example'), '403')
    assert.deepEqual(received, [])
    await proxy.stop()
  })

  it('sends every path with --disable-filter', async () => {
    const proxy = await startProxy('--disable-filter', '--reject-paths=.*')
    received.length = 0
    assert.equal(await proxy.send('/%2e%2e/x', 'any.example'), '200')
    assert.deepEqual(received, ['GET /%2e%2e/x'])
    await proxy.stop()
  })
})
